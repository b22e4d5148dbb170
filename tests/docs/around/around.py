"""The reader's own functions, in Python."""

import asyncio
import time


def take_one_unit(token: int) -> None:
    assert token > 0


async def take_one_unit_async(token: int) -> None:
    assert token > 0


def update(fence: int) -> None:
    assert fence > 0


async def update_async(fence: int) -> None:
    assert fence > 0


__all__ = ["asyncio", "take_one_unit", "take_one_unit_async", "time", "update", "update_async"]
