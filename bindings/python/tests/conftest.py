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


def server_url(backend: str) -> str:
    """The shared server of a backend."""
    variable = f"FENCELOCK_TEST_{backend.upper()}_URL"
    url = os.environ.get(variable)
    if url is None:
        if os.environ.get("FENCELOCK_TEST_WITHOUT_SERVERS") == "1":
            pytest.skip("FENCELOCK_TEST_WITHOUT_SERVERS=1")
        # Not a skip: a run without servers must not look like a good one.
        pytest.fail(f"{variable} is not set: run the tests with tests/services/run")
    return url


def backend_url(backend: str, tmp_path: Path) -> str:
    if backend == "memory":
        return f"memory:{uuid.uuid4()}"
    if backend == "file":
        return f"file://{tmp_path}/locks"
    return server_url(backend)


SERVERS = ["redis", "mongodb", "zookeeper"]


@pytest.fixture(params=["memory", "file", *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A backend that several clients of this process share."""
    return backend_url(request.param, tmp_path)


@pytest.fixture(params=["file", *SERVERS])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A backend that several processes share."""
    return backend_url(request.param, tmp_path)


@pytest.fixture(params=["file", "redis", "mongodb"])
def fork_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A backend to which a forked child may connect although its parent had."""
    return backend_url(request.param, tmp_path)


@pytest.fixture
def redis_url() -> str:
    """The shared Redis server."""
    return server_url("redis")


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
