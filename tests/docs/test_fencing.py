"""The code of FENCING.md refuses late writers, and lets one lease write twice."""

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pages
import programs
import pytest
from moto.server import ThreadedMotoServer
from pymongo import MongoClient
from redis import Redis

PAGE = "core/src/FENCING.md"


def refuses_late_writers(write: Callable[[int], bool]) -> None:
    assert [write(5), write(5)] == [True, True]
    assert write(8)
    assert not write(5)
    assert [write(8), write(9)] == [True, True]


def keeps_the_greatest(write: Callable[[int], bool]) -> None:
    """Two holders who write at once: whatever the order, the greatest token wins."""
    with ThreadPoolExecutor(2) as both:
        turns = [range(1, 100, 2), range(2, 101, 2)]
        written = list(both.map(lambda tokens: [write(token) for token in tokens], turns))
    assert written[1][-1], "nothing is greater"
    assert not write(99)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:", isolation_level=None) as database:
        database.executescript((programs.AROUND / "tables.sql").read_text())
        yield database


def stock(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT stock FROM product WHERE id = 123").fetchone()[0])


def test_sql_one_row(database: sqlite3.Connection) -> None:
    prepare, update = programs.statements(pages.code(PAGE, "sql", "SQL, one row"))
    database.execute(prepare)
    refuses_late_writers(lambda token: database.execute(update, {"token": token}).rowcount == 1)
    assert stock(database) == 95


def test_the_readme_has_the_same_sql() -> None:
    section = "How a resource checks a fencing token"
    assert pages.code("README.md", "sql", section) == pages.code(PAGE, "sql", "SQL, one row")


def test_sql_several_rows(database: sqlite3.Connection) -> None:
    code = pages.code(PAGE, "sql", "SQL, several rows or tables")
    prepare, *transaction = programs.statements(code)
    assert (transaction[0], transaction[-1]) == ("BEGIN", "COMMIT")
    database.execute(prepare)

    def write(token: int) -> bool:
        database.execute("BEGIN")
        for statement in transaction[1:-1]:
            if database.execute(statement, {"token": token}).rowcount != 1:
                database.execute("ROLLBACK")
                return False
        database.execute("COMMIT")
        return True

    refuses_late_writers(write)
    assert stock(database) == 95
    rows = database.execute("SELECT token FROM orders").fetchall()
    assert [token for (token,) in rows] == [5, 5, 8, 8, 9]


def test_redis() -> None:
    script = pages.code(PAGE, "lua", "Redis")
    keys = [f"fencing-{uuid.uuid4()}", f"fencing-{uuid.uuid4()}"]
    with Redis.from_url(programs.server("redis"), decode_responses=True) as client:
        refuses_late_writers(lambda token: client.eval(script, 2, *keys, token, "new") == 1)
        assert client.eval(script, 2, *keys, 2**53 - 2, "newest") == 1
        assert client.eval(script, 2, *keys, 2**53 - 3, "late") == 0
        assert client.get(keys[0]) == "newest"
        client.delete(*keys)


def test_redis_written_by_two_at_once() -> None:
    script = pages.code(PAGE, "lua", "Redis")
    keys = [f"fencing-{uuid.uuid4()}", f"fencing-{uuid.uuid4()}"]
    with Redis.from_url(programs.server("redis"), decode_responses=True) as client:
        keeps_the_greatest(lambda token: client.eval(script, 2, *keys, token, f"by {token}") == 1)
        assert client.get(keys[0]) == "by 100"
        client.delete(*keys)


def run(heading: str) -> dict[str, Any]:
    """What the Python of a section defines."""
    defined: dict[str, Any] = {}
    exec(programs.of_this_run(pages.code(PAGE, "python", heading)), defined)
    return defined


@pytest.fixture
def mongodb() -> Iterator[dict[str, Any]]:
    defined = run("MongoDB")
    yield defined
    client: MongoClient[dict[str, Any]] = defined["client"]
    client.drop_database(defined["products"].database.name)
    client.close()


def test_mongodb(mongodb: dict[str, Any]) -> None:
    products, sell_one = mongodb["products"], mongodb["sell_one"]
    products.insert_one({"_id": "a", "stock": 6})
    assert not sell_one("a", 5)  # without the field, as the page warns
    mongodb["introduce_the_fence"]()
    refuses_late_writers(lambda token: bool(sell_one("a", token)))
    assert sell_one("a", 9) and not sell_one("a", 9)
    assert products.find_one("a") == {"_id": "a", "stock": 0, "fence": 9}


def test_mongodb_where_the_document_may_not_exist(mongodb: dict[str, Any]) -> None:
    set_price = mongodb["set_price"]
    refuses_late_writers(lambda token: bool(set_price("b", token * 10, token)))
    found = mongodb["products"].find_one("b")
    assert found == {"_id": "b", "stock": 0, "price": 90, "fence": 9}


def test_mongodb_written_by_two_at_once(mongodb: dict[str, Any]) -> None:
    set_price = mongodb["set_price"]
    keeps_the_greatest(lambda token: bool(set_price("c", token * 10, token)))
    found = mongodb["products"].find_one("c")
    assert found == {"_id": "c", "stock": 0, "price": 1000, "fence": 100}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]:
        monkeypatch.setenv(name, "testing")
    defined = run("Object stores")
    # The server keeps its buckets for as long as this process lives.
    defined["bucket"] = f"bucket-{uuid.uuid4()}"
    defined["s3"].create_bucket(Bucket=defined["bucket"])
    yield defined
    server.stop()


def test_object_store(s3: dict[str, Any]) -> None:
    refuses_late_writers(lambda token: bool(s3["write"](s3["bucket"], "a", "data", token)))


@pytest.mark.parametrize("first", [True, False])
def test_object_store_written_between_read_and_write(
    s3: dict[str, Any], first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the newer holder writes the same data: the ETag is another one."""
    client, write, bucket = s3["s3"], s3["write"], s3["bucket"]
    if not first:
        assert write(bucket, "a", "data", 1)
    put = client.put_object
    newer = iter([8])

    def late(**arguments: Any) -> Any:
        for token in newer:
            assert write(bucket, "a", "data", token)
        return put(**arguments)

    monkeypatch.setattr(client, "put_object", late)
    assert not write(bucket, "a", "data", 5)
    assert b'"fence": 8' in client.get_object(Bucket=bucket, Key="a")["Body"].read()


def test_object_store_keeps_its_etag_when_only_metadata_change(s3: dict[str, Any]) -> None:
    """As the page warns. If that is over, the page may be shorter."""
    put = s3["s3"].put_object
    tags = {
        put(Bucket=s3["bucket"], Key="b", Body=b"same", Metadata={"fence": str(token)})["ETag"]
        for token in [5, 8]
    }
    assert len(tags) == 1
