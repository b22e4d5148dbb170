"""Native calls in an event loop: no thread per call, and the loop is never blocked."""

import asyncio
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

from . import _native

Callback: TypeAlias = Callable[[Any, BaseException | None], None]


class Bridge:
    """Delivers the ends of calls into one event loop.

    It must not refer to the loop, or no loop would ever be collected.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._completions = _native.Completions()
        self._callbacks: dict[int, Callback] = {}
        loop.add_reader(self._completions.fileno(), self._deliver)

    def start(self, call: _native.Call, callback: Callback) -> int:
        """Starts the call; ``callback(value, error)`` runs in the loop when it has ended."""
        number = call.start(self._completions)
        self._callbacks[number] = callback
        return number

    def forget(self, number: int, call: _native.Call) -> None:
        """Ends the call. Its callback does not run any more."""
        self._callbacks.pop(number, None)
        call.cancel()

    def _deliver(self) -> None:
        for number, value, error in self._completions.drain():
            callback = self._callbacks.pop(number, None)
            # Without one the call was cancelled while its end was on the way here. If it brought
            # a lease, dropping that releases it.
            if callback is not None:
                callback(value, error)


_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Bridge] = weakref.WeakKeyDictionary()


def bridge(loop: asyncio.AbstractEventLoop) -> Bridge:
    """The bridge of the running loop."""
    found = _bridges.get(loop)
    if found is None:
        found = _bridges[loop] = Bridge(loop)
    return found


async def run(call: _native.Call) -> Any:
    """Makes the call. Cancelling ends it, or drops its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def done(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    to_loop = bridge(loop)
    number = to_loop.start(call, done)
    try:
        return await future
    except BaseException:
        to_loop.forget(number, call)
        if future.done() and not future.cancelled():
            future.exception()  # seen; else asyncio would report it as never retrieved
        # A result that came together with the cancellation is dropped now, not when the last
        # traceback that can see this frame is gone: a lease would stay held until then.
        del future
        raise
