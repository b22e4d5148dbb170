"""Runs the cases of tests/conformance, one test for each case and backend.

The format is described in the README there. Steps are made by blocking calls; a wait in the
background is a task of an event loop in another thread, so that both worlds meet in each queue.
"""

import asyncio
import json
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
import redis

import fencelock
from conftest import server_url
from fencelock import FencelockError, Lease, LockInfo

FOLDER = Path(__file__).parents[3] / "tests" / "conformance"

CAPABILITIES = {
    *("signed_time", "float_time", "sub_ms_time"),
    *("nul_in_text", "lone_surrogates", "drop_releases"),
}
"""What Python's types can express: times are floats, a str holds any code points."""

PATIENCE = 30.0
"""Seconds that no step takes, other than one that hangs."""

Object = dict[str, Any]


# Backends.


@dataclass
class Space:
    """An empty space of a backend, shared by all clients of one run."""

    url: str
    server: tuple[str, str] | None = None
    """Of a server that has keys: where raw commands go, and what its keys begin with."""
    unknown: frozenset[str] = frozenset()
    """What ``inspect`` cannot show there."""


def memory_space(directory: Path) -> Space:
    return Space(f"memory:conformance-{uuid.uuid4()}")


def file_space(directory: Path) -> Space:
    return Space(f"file://{directory / 'locks'}")


def redis_space(directory: Path) -> Space:
    server, prefix = server_url("redis"), f"conformance-{uuid.uuid4()}:"
    return Space(with_query(server, f"fl.prefix={prefix}"), (server, prefix))


def mongodb_space(directory: Path) -> Space:
    return Space(with_query(server_url("mongodb"), f"fl.collection=fencelock.{uuid.uuid4()}"))


def zookeeper_space(directory: Path) -> Space:
    url = with_query(server_url("zookeeper"), f"fl.root=/conformance-{uuid.uuid4()}")
    return Space(url, unknown=frozenset({"held_ms", "ttl_left_ms"}))


BACKENDS: dict[str, Callable[[Path], Space]] = {
    "memory": memory_space,
    "file": file_space,
    "redis": redis_space,
    "mongodb": mongodb_space,
    "zookeeper": zookeeper_space,
}
"""The one list of them."""


def with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


# Cases.


@dataclass(frozen=True)
class Case:
    """One case, or one row of a case that has rows."""

    name: str
    needs: tuple[str, ...]
    backends: Sequence[str] | None
    raw: list[Object]
    tables: dict[str, list[Object]]

    def steps(self, capabilities: set[str] | None = None) -> Iterator[Object]:
        """Plain steps, without the inner rows that need what is not there. None = with all."""
        for step in self.raw:
            if step["do"] != "for_each":
                yield step
                continue
            only(step, {"do", "row", "steps"})
            for row in self.tables[step["row"]]:
                if capabilities is None or capabilities.issuperset(row.get("needs", ())):
                    yield from (fill(inner, row) for inner in step["steps"])


def read_cases() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        only(content, {"about", "tables", "cases"})
        tables = content.get("tables", {})
        for case in content["cases"]:
            only(case, {"id", "about", "rows", "needs", "backends", "steps"})
            name, needs = f"{path.stem}.{case['id']}", tuple(case.get("needs", ()))
            rest = (case.get("backends"), case["steps"], tables)
            if "rows" not in case:
                yield Case(name, needs, *rest)
                continue
            for row in tables[case["rows"]]:
                steps = [fill(step, row) for step in case["steps"]]
                needs_too = (*needs, *row.get("needs", ()))
                yield Case(f"{name}.{row['id']}", needs_too, rest[0], steps, tables)


def fill(value: Any, row: Object) -> Any:
    """Replaces "$key" by the row's value of that key."""
    if isinstance(value, str) and value.startswith("$"):
        return row[value[1:]]
    if isinstance(value, list):
        return [fill(item, row) for item in value]
    if isinstance(value, dict):
        # A for_each inside has rows of its own.
        return {key: item if key == "steps" else fill(item, row) for key, item in value.items()}
    return value


def only(found: Object, allowed: set[str]) -> None:
    """A typing error must not pass."""
    assert found.keys() <= allowed, f"unknown: {found.keys() - allowed}"


# Values.


def text(value: Any) -> str:
    """A text, also a long one or one that is no Unicode."""
    if isinstance(value, str):
        return value
    if "repeat" in value:
        return str(value["repeat"]) * int(value["times"]) + str(value.get("then", ""))
    return "".join(map(chr, value["utf16"]))


TIMES = {
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "-0": -0.0,
    "max": sys.float_info.max,
}


def seconds(value: Any) -> float:
    """Milliseconds as the unit of this library."""
    return TIMES[value] if isinstance(value, str) else value / 1000


def maybe_seconds(value: Any) -> float | None:
    return None if value is None else seconds(value)


def given(step: Object, **options: Callable[[Any], Any]) -> Object:
    """The options that the step has, by the name of this library (without `_ms`)."""
    found = {key: convert(step[key]) for key, convert in options.items() if key in step}
    return {key.removesuffix("_ms"): value for key, value in found.items()}


def within(what: str, found_ms: float, bounds: Sequence[float]) -> None:
    least, most = bounds
    assert least <= found_ms <= most, f"{what} is {found_ms} ms, not {least} to {most}"


# Steps.


class EventLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Lease]) -> "Future[Lease]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class World:
    """What the steps of one case have made so far, by name."""

    space: Space
    clients: dict[str, fencelock.Client] = field(default_factory=dict)
    all_clients: list[fencelock.Client] = field(default_factory=list)
    """Those too whose name was used again."""
    locks: dict[str, fencelock.Lock] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    """Of every lease, also of those that are gone."""
    waiting: dict[str, "Future[Lease]"] = field(default_factory=dict)
    stopwatches: dict[str, float] = field(default_factory=dict)
    loop: EventLoop = field(default_factory=EventLoop)

    def close(self) -> None:
        self.leases.clear()
        for client in self.all_clients:
            client.close()
        self.loop.stop()

    def judged(self, step: Object) -> None:
        """Executes a step and judges how it ended."""
        execute, keys = WORDS[step["do"]]
        only(step, keys | {"do", "error", "says", "hides"})
        code = step.get("error")
        try:
            execute(self, step)
        except FencelockError as error:
            if code is None:
                raise
            judge_error(step, error)
            # The traceback would keep what the step had in its hands.
            error.__traceback__ = None
        else:
            assert code is None, f"succeeded, not {code}"

    def connect(self, step: Object) -> None:
        url: str | None = step.get("url", self.space.url)
        if url is not None and "query" in step:
            url = with_query(url, step["query"])
        if url is not None and "credentials" in step:
            url = url.replace("://", f"://{step['credentials']}@", 1)
        options = step.get("options", {})
        times = dict.fromkeys(("connect_timeout_ms", "request_timeout_ms"), seconds)
        texts = dict.fromkeys(("prefix", "collection", "root", "node_layout"), text)
        only(options, {*times, *texts})
        options = given(options, **times, **texts)
        client = fencelock.connect(url, **options)
        self.all_clients.append(client)
        self.clients[step["as"]] = client

    def close_client(self, step: Object) -> None:
        self.clients[step["client"]].close()

    def lock(self, step: Object) -> None:
        options = given(step, ttl_ms=seconds, renew=bool, max_hold_ms=seconds, metadata=text)
        client = self.clients[step["client"]]
        self.locks[step["as"]] = client.lock(text(step["name"]), **options)

    def keep(self, name: str, lease: Lease) -> None:
        self.tokens[name] = lease.token
        self.leases[name] = lease

    def acquire(self, step: Object) -> None:
        limit = maybe_seconds(step.get("timeout_ms"))
        self.keep(step["as"], self.locks[step["lock"]].acquire(timeout=limit))

    def try_acquire(self, step: Object) -> None:
        lease = self.locks[step["lock"]].try_acquire()
        if lease is not None:
            self.keep(step["as"], lease)
        expect(step, lease is not None)

    def start_acquire(self, step: Object) -> None:
        limit = maybe_seconds(step.get("timeout_ms"))
        work = self.locks[step["lock"]].acquire_async(timeout=limit)
        self.waiting[step["as"]] = self.loop.start(work)

    def await_acquire(self, step: Object) -> None:
        self.keep(step["lease"], self.waiting.pop(step["lease"]).result())

    def cancel_acquire(self, step: Object) -> None:
        assert self.waiting.pop(step["lease"]).cancel(), "it had ended"

    def release(self, step: Object) -> None:
        self.leases[step["lease"]].release()

    def drop(self, step: Object) -> None:
        del self.leases[step["lease"]]

    def renew(self, step: Object) -> None:
        self.leases[step["lease"]].renew()

    def check(self, step: Object) -> None:
        self.leases[step["lease"]].check()

    def held(self, step: Object) -> None:
        expect(step, self.leases[step["lease"]].held)

    def is_lost(self, step: Object) -> None:
        expect(step, self.leases[step["lease"]].lost.is_set())

    def wait_lost(self, step: Object) -> None:
        limit = seconds(step["within_ms"]) if "within_ms" in step else PATIENCE
        expect(step, self.leases[step["lease"]].lost.wait(limit))

    def remaining(self, step: Object) -> None:
        found = self.leases[step["lease"]].remaining * 1000
        within("remaining", found, (step["at_least_ms"], step["at_most_ms"]))

    def token(self, step: Object) -> None:
        ours = self.tokens[step["lease"]]
        for other in step["greater_than"]:
            assert ours > self.tokens[other], f"not greater than that of {other}"

    def look(self, step: Object) -> LockInfo:
        name = text(step["name"])
        info = self.clients[step["client"]].inspect(name)
        assert info.name == name
        return info

    def judge_info(self, shows: Object, info: LockInfo) -> None:
        unknown = dict.fromkeys(self.space.unknown.intersection(shows))
        judge_info({**shows, **unknown}, info, self.tokens)

    def inspect(self, step: Object) -> None:
        self.judge_info(step.get("shows", {}), self.look(step))

    def wait_until(self, step: Object) -> None:
        end = time.monotonic() + PATIENCE * 2 / 3
        while True:
            info = self.look(step)
            try:
                self.judge_info(step["shows"], info)
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.005)

    def list(self, step: Object) -> None:
        found = [info.name for info in self.clients[step["client"]].list()]
        assert sorted(found, key=str.encode) == [text(name) for name in step["names"]]

    def force_release(self, step: Object) -> None:
        expect(step, self.clients[step["client"]].force_release(text(step["name"])))

    def sleep(self, step: Object) -> None:
        time.sleep(seconds(step["ms"]))

    def stopwatch(self, step: Object) -> None:
        self.stopwatches[step["as"]] = time.monotonic()

    def elapsed(self, step: Object) -> None:
        found = (time.monotonic() - self.stopwatches[step["since"]]) * 1000
        within("elapsed", found, (step["at_least_ms"], step["at_most_ms"]))

    def redis(self, step: Object) -> None:
        assert self.space.server is not None, "no server with keys"
        url, prefix = self.space.server
        with redis.Redis.from_url(url) as server:
            key = prefix + text(step["name"])
            server.execute_command(step["command"], key, *map(text, step["arguments"]))


WORDS: dict[str, tuple[Callable[[World, Object], None], set[str]]] = {
    "connect": (World.connect, {"as", "url", "query", "credentials", "options"}),
    "close": (World.close_client, {"client"}),
    "lock": (
        World.lock,
        {"client", "name", "as", "ttl_ms", "renew", "max_hold_ms", "metadata"},
    ),
    "acquire": (World.acquire, {"lock", "as", "timeout_ms"}),
    "try_acquire": (World.try_acquire, {"lock", "as", "expect"}),
    "start_acquire": (World.start_acquire, {"lock", "as", "timeout_ms"}),
    "await_acquire": (World.await_acquire, {"lease"}),
    "cancel_acquire": (World.cancel_acquire, {"lease"}),
    "release": (World.release, {"lease"}),
    "drop": (World.drop, {"lease"}),
    "renew": (World.renew, {"lease"}),
    "check": (World.check, {"lease"}),
    "held": (World.held, {"lease", "expect"}),
    "is_lost": (World.is_lost, {"lease", "expect"}),
    "wait_lost": (World.wait_lost, {"lease", "within_ms", "expect"}),
    "remaining": (World.remaining, {"lease", "at_least_ms", "at_most_ms"}),
    "token": (World.token, {"lease", "greater_than"}),
    "inspect": (World.inspect, {"client", "name", "shows"}),
    "wait_until": (World.wait_until, {"client", "name", "shows"}),
    "list": (World.list, {"client", "names"}),
    "force_release": (World.force_release, {"client", "name", "expect"}),
    "sleep": (World.sleep, {"ms"}),
    "stopwatch": (World.stopwatch, {"as"}),
    "elapsed": (World.elapsed, {"since", "at_least_ms", "at_most_ms"}),
    "redis": (World.redis, {"command", "name", "arguments"}),
}
"""The words that this runner knows, each with the keys that it takes."""


# Judgement.


def expect(step: Object, found: bool) -> None:
    if "error" not in step:
        assert found is step["expect"]


def judge_error(step: Object, error: FencelockError) -> None:
    message = str(error)
    assert error.code == step["error"], message
    for part in map(text, step.get("says", ())):
        assert part in message
    shown = " ".join([repr(error), repr(error.__cause__), *getattr(error, "__notes__", ())])
    for part in map(text, step.get("hides", ())):
        assert part not in message and part not in shown


ID = re.compile(r"[0-9a-f]{32}")


def judge_info(shows: Object, info: LockInfo, tokens: dict[str, int]) -> None:
    for key, wanted in shows.items():
        if key == "owner" and wanted == "id":
            assert info.owner is not None and ID.fullmatch(info.owner)
        elif key in ("state", "owner"):
            assert getattr(info, key) == wanted, info
        elif key == "token":
            assert info.token == (None if wanted is None else tokens[wanted]), info
        elif key == "metadata":
            assert info.metadata == (None if wanted is None else text(wanted)), info
        elif key == "metadata_says":
            assert all(part in (info.metadata or "") for part in wanted), info
        elif key in ("held_ms", "ttl_left_ms"):
            found = getattr(info, key)
            assert (found is None) == (wanted is None), info
            if found is not None:
                within(key, found, wanted)
        elif key == "queue_length":
            assert len(info.queue) == wanted, info
        elif key == "queue_metadata":
            assert [waiter.metadata for waiter in info.queue] == list(map(text, wanted)), info
        elif key == "queue_owners" and wanted == "ids":
            owners = [waiter.owner for waiter in info.queue]
            assert all(map(ID.fullmatch, owners)), info
            assert len({info.owner, *owners}) == len(owners) + 1, info
        elif key == "queue_waiting_ms":
            for waiter in info.queue:
                within(key, waiter.waiting_ms, wanted)
        else:
            pytest.fail(f"unknown key {key!r} or value {wanted!r} in shows")


# Tests.


CASES = list(read_cases())


def parameters() -> Iterator[Any]:
    for case in CASES:
        lacking = sorted(set(case.needs) - CAPABILITIES)
        marks = [pytest.mark.skip(reason=f"needs {', '.join(lacking)}")] if lacking else []
        for backend in BACKENDS:
            if case.backends is None or backend in case.backends:
                yield pytest.param(case, backend, id=f"{case.name}[{backend}]", marks=marks)


@pytest.mark.parametrize(("case", "backend"), list(parameters()))
def test_case(case: Case, backend: str, tmp_path: Path) -> None:
    assert "FENCELOCK_URL" not in os.environ, "unset it for these tests"
    world = World(BACKENDS[backend](tmp_path))
    # A step that hangs must fail its case, not stop the run; closing the clients ends it.
    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            for number, step in enumerate(case.steps(CAPABILITIES), start=1):
                try:
                    thread.submit(world.judged, step).result(PATIENCE)
                except Exception as difference:
                    refuse(number, step, difference)
        finally:
            world.close()


def refuse(number: int, step: Object, difference: Exception) -> NoReturn:
    what = json.dumps(step, ensure_ascii=False)[:2000]
    difference.add_note(f"step {number}: {what}")
    raise difference


def described(heading: str) -> set[str]:
    """The first column of the first table below a heading of the README."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = re.search(r"(?m)(^\|.*\n)+", readme.partition(f"\n## {heading}\n")[2])
    names = set(re.findall(r"(?m)^\| `([^`]+)`", table[0] if table else ""))
    assert names, f"no table below {heading!r}"
    return names


def of_steps(key: str) -> set[str]:
    """All values of a key in all steps, whether this runner can execute them or not."""
    return {step[key] for case in CASES for step in case.steps() if key in step}


def test_format_words() -> None:
    """The README describes the words that cases use and this runner knows: no more, no less."""
    assert of_steps("do") == described("Steps") == set(WORDS)


def test_format_capabilities() -> None:
    needed = {need for case in CASES for need in case.needs}
    assert needed == described("Capabilities") >= CAPABILITIES


def test_format_backends() -> None:
    named = {backend for case in CASES for backend in case.backends or ()}
    assert named | set(BACKENDS) <= described("Backends")


def test_format_kinds() -> None:
    """Every kind of error is provoked by a case, or the README says why not."""
    provoked, excused = of_steps("error"), described("Errors that no case provokes")
    assert not provoked & excused
    assert provoked | excused == {kind.code for kind in FencelockError.__subclasses__()}


def test_format_names() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
