"""Names, numbers and URLs are checked before any I/O; the message says what is allowed."""

import math
from typing import Any

import pytest

import fencelock
from fencelock import Client, InvalidArgument


@pytest.mark.parametrize("value", ["30", b"30", True, False, [], object(), None, 1j])
def test_g10_a_ttl_is_a_number(client: Client, value: Any) -> None:
    with pytest.raises(TypeError, match="ttl must be a number of seconds, not"):
        client.lock("a", ttl=value)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -0.0, -1, -1e-9, 5e-324, 1e-9, 0.0004, 0.0999),
        *(86400.001, 2**53, 10**400, 1e300, math.nan, math.inf, -math.inf),
    ],
)
def test_g10_a_ttl_is_100_ms_to_24_h(client: Client, value: float) -> None:
    with pytest.raises(InvalidArgument, match="100 ms to 24 h") as error:
        client.lock("a", ttl=value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("value", [0.1, 1, 1.5, 86400])
def test_g10_good_ttls(client: Client, value: float) -> None:
    client.lock("a", ttl=value)


@pytest.mark.parametrize("value", ["5", True, False, [], object()])
def test_g10_a_timeout_is_a_number_or_none(client: Client, value: Any) -> None:
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not"):
        client.lock("a", timeout=value)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not"):
        client.lock("a").acquire(timeout=value)
    with pytest.raises(TypeError, match="timeout must be a number of seconds, not"):
        client.rlock("a").acquire(timeout=value)


@pytest.mark.parametrize("value", [-1, -1e-9, 2**53, 10**400, 1e300, math.nan, math.inf])
def test_g10_a_timeout_is_0_to_10_years(client: Client, name: str, value: float) -> None:
    with pytest.raises(InvalidArgument, match="0 to 10 years"):
        client.lock(name, timeout=value)
    with pytest.raises(InvalidArgument, match="0 to 10 years"):
        client.lock(name).acquire(timeout=value)
    assert client.inspect(name).state == "free"


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1e-9, 0.0004, 5, 315_360_000, None])
def test_g10_good_timeouts(client: Client, name: str, value: float | None) -> None:
    # So short a wait may end before the server's answer is there; but it is a wait.
    for lock in (client.lock(name, timeout=value), client.lock(name)):
        try:
            lock.acquire(timeout=value).release()
            lock.acquire().release()
        except fencelock.LockTimeout:
            assert value and value < 1


def test_g10_the_timeout_of_the_call_counts(client: Client, name: str) -> None:
    lock = client.lock(name, timeout=0)
    with lock:
        with pytest.raises(fencelock.LockTimeout):
            lock.acquire()
        with pytest.raises(fencelock.LockTimeout, match="not obtained within 1"):
            lock.acquire(timeout=0.1)


def test_g10_other_options(client: Client) -> None:
    with pytest.raises(TypeError, match="renew must be bool, not int"):
        client.lock("a", renew=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="metadata must be str, not int"):
        client.lock("a", metadata=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="max_hold"):
        client.lock("a", ttl=5, max_hold=5)
    with pytest.raises(TypeError, match="max_hold must be a number"):
        client.lock("a", max_hold=True)
    with pytest.raises(InvalidArgument, match="metadata"):
        client.lock("a", metadata="x" * 1000)
    with pytest.raises(TypeError):
        client.lock("a").acquire(5)  # type: ignore[call-arg]


BAD_NAMES = ["", "a\0b", "~fl", "~flame", "x" * 1025, "é" * 513, "\ud800"]
GOOD_NAMES = [
    *("a", "x" * 1024, "a\nb", " ", "..", "/a//b", "a/../b", "{x}", "a{b", "a}b", "{}x", "*", "?"),
    *("$ne", "%", "%00", "é", "e\u0301", "🔒", "~", "\\", "fencelock:a", "a:b", "\u202e"),
]


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_g10_bad_names(client: Client, bad: str) -> None:
    for call in (client.lock, client.rlock, client.inspect, client.force_release):
        with pytest.raises(InvalidArgument):
            call(bad)


@pytest.mark.parametrize("wrong", [None, 1, b"a", ["a"]])
def test_g10_a_name_is_a_string(client: Client, wrong: Any) -> None:
    with pytest.raises(TypeError, match="name must be str, not"):
        client.lock(wrong)


def test_g10_each_good_name_is_a_lock_of_its_own(client: Client, name: str) -> None:
    # The common prefix keeps tests apart; the names at the very beginning are tried as well.
    leases = [client.lock(good, ttl=5).acquire(timeout=30) for good in GOOD_NAMES]
    names = [f"{name}{good}"[:1000] for good in GOOD_NAMES]
    leases += [client.lock(good).acquire(timeout=0) for good in dict.fromkeys(names)]
    assert all(lease.held for lease in leases)
    held = {info.name for info in client.list()}
    assert {lease.name for lease in leases} <= held
    for lease in leases:
        lease.release()


def test_g10_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="url must be str, not int"):
        fencelock.connect(1)  # type: ignore[arg-type]
    nobody = "redis://127.0.0.1:1/"  # checked before anybody is asked
    for bad in ("", "localhost", nobody + "?fl.nonsense=1", nobody + "?fl.prefix=a%00b"):
        with pytest.raises(InvalidArgument):
            fencelock.connect(bad)
    with pytest.raises(fencelock.FencelockError) as error:
        fencelock.connect("nonsense://host/")
    assert error.value.code in ("INVALID_ARGUMENT", "UNSUPPORTED")
    for option in ("connect_timeout", "request_timeout"):
        for value in (-1, 0, math.nan, 1e300, 3601):
            with pytest.raises(InvalidArgument, match="1 ms to 1 h"):
                fencelock.connect("memory:", **{option: value})  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            fencelock.connect("memory:", **{option: "1"})  # type: ignore[arg-type]

    monkeypatch.delenv("FENCELOCK_URL", raising=False)
    with pytest.raises(InvalidArgument, match="file:"):
        fencelock.connect()
    monkeypatch.setenv("FENCELOCK_URL", "memory:")
    fencelock.connect().close()


def test_g10_a_password_never_shows(name: str) -> None:
    with pytest.raises(fencelock.FencelockError) as error:
        fencelock.connect("redis://user:hunter2@127.0.0.1:1/", connect_timeout=1)
    shown = "".join([str(error.value), repr(error.value), *getattr(error.value, "__notes__", [])])
    assert "hunter2" not in shown


def test_g10_async_calls_check_as_well(client: Client) -> None:
    with pytest.raises(InvalidArgument):
        client.lock("a").acquire_async(timeout=-1).send(None)
    with pytest.raises(TypeError):
        client.lock("a").acquire_async(timeout="5").send(None)  # type: ignore[arg-type]
