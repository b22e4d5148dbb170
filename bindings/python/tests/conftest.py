"""Fixtures: every contract test runs on each backend."""

import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import fencelock

pytest.register_assert_rewrite("support")

from support import RedisServer, redis_server  # noqa: E402 - only now, so that its asserts explain

# A shell starts background jobs with SIGINT ignored, and the programs that the tests start would
# inherit that: Ctrl-C would never reach them. What is handled here is the default there.
signal.signal(signal.SIGINT, signal.default_int_handler)


def shared_redis_url() -> str:
    url = os.environ.get("FENCELOCK_TEST_REDIS_URL")
    if url is None:
        if os.environ.get("FENCELOCK_TEST_WITHOUT_REDIS") == "1":
            pytest.skip("FENCELOCK_TEST_WITHOUT_REDIS=1")
        # Not a skip: a run without servers must not look like a good one.
        pytest.fail("FENCELOCK_TEST_REDIS_URL is not set: run the tests with tests/services/run")
    return url


@pytest.fixture(params=["memory", "file", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A backend that several clients of this process share."""
    if request.param == "memory":
        return f"memory:{uuid.uuid4()}"
    if request.param == "file":
        return f"file://{tmp_path}/locks"
    return shared_redis_url()


@pytest.fixture(params=["file", "redis"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A backend that several processes share."""
    return f"file://{tmp_path}/locks" if request.param == "file" else shared_redis_url()


@pytest.fixture
def redis_url() -> str:
    """The shared Redis server."""
    return shared_redis_url()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server that the test may stop."""
    with redis_server(tmp_path) as server:
        yield server


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lock name that no other test uses."""
    return f"{re.sub(r'[^a-z0-9_]', '-', request.node.name)}/{uuid.uuid4()}"


@pytest.fixture
def client(url: str) -> Iterator[fencelock.Client]:
    with fencelock.connect(url) as client:
        yield client


@pytest.fixture
def other(url: str) -> Iterator[fencelock.Client]:
    """A second client of the same backend."""
    with fencelock.connect(url) as client:
        yield client
