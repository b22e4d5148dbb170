"""Warnings of the core arrive in Python's logging, under "fencelock"."""

import logging
import threading

import pytest

import fencelock
from fencelock import Client
from support import LIMIT, wait_until


def test_a_lost_lease_is_a_warning(
    client: Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "fencelock"):
        lease = client.lock(name, ttl=0.1, renew=False).acquire()
        assert lease.lost.wait(LIMIT)
        wait_until(lambda: any(name in record.getMessage() for record in caplog.records))
    (record,) = [record for record in caplog.records if name in record.getMessage()]
    assert record.name == "fencelock"
    assert record.levelno == logging.WARNING
    assert f"token={lease.token}" in record.getMessage()


def test_a_handler_may_block_and_use_locks(client: Client, name: str) -> None:
    entered, leave, used = threading.Event(), threading.Event(), threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if name in record.getMessage():
                entered.set()
                assert leave.wait(LIMIT)
                with client.lock(name + "/used by the handler"):
                    used.set()

    logger = logging.getLogger("fencelock")
    handler = Handler()
    logger.addHandler(handler)
    try:
        lease = client.lock(name, ttl=0.1, renew=False).acquire()
        assert lease.lost.wait(LIMIT)
        assert entered.wait(LIMIT)
        # While it blocks, everything goes on.
        with client.lock(name, ttl=1.5) as second:
            assert not second.lost.wait(1.8)
        leave.set()
        assert used.wait(LIMIT)
    finally:
        leave.set()
        logger.removeHandler(handler)


def test_a_panic_in_native_code_is_an_internal_error(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "fencelock"):
        with pytest.raises(fencelock.Internal, match="asked for by a test"):
            fencelock._native.panic_for_test().wait()
        wait_until(lambda: any("asked for by a test" in r.getMessage() for r in caplog.records))
