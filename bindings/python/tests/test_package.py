"""The package as such: exceptions, types, stubs, and the wheel alone in a clean environment."""

import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fencelock
from fencelock import FencelockError, LockInfo, WaiterInfo, _errors, _native

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def classes() -> list[type[FencelockError]]:
    found: list[type[FencelockError]] = []
    for name in fencelock.__all__:
        value = getattr(fencelock, name)
        if isinstance(value, type) and issubclass(value, FencelockError):
            found.append(value)
    return found


def test_every_kind_of_error_has_its_class() -> None:
    codes = _native.error_codes()
    assert len(codes) == len(set(codes)) >= 11
    assert set(codes) == set(_errors.BY_CODE)
    for code in codes:
        error = _errors.from_code(code, "text", "cause")
        # The default for codes that are not known: only its own may fall to it.
        assert (type(error) is fencelock.Internal) == (code == "INTERNAL")
        assert (error.code, type(error).code, str(error)) == (code, code, "text")
        assert error.__notes__ == ["cause: cause"]
        assert type(error) in classes()
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), copy.args) == (type(error), error.args)


def test_the_exceptions_fit_in_with_pythons_own() -> None:
    assert issubclass(fencelock.LockTimeout, TimeoutError)
    assert issubclass(fencelock.Unavailable, ConnectionError)
    assert issubclass(fencelock.InvalidArgument, ValueError)
    assert issubclass(fencelock.NotOwner, RuntimeError)
    assert {cls.__name__ for cls in classes()} == {
        *("FencelockError", "LockTimeout", "LockLost", "Unavailable", "InvalidArgument"),
        *("AuthFailed", "Unsupported", "Conflict", "Cancelled", "Closed", "Forked", "Internal"),
        "NotOwner",
    }


def test_infos_are_values() -> None:
    waiter = WaiterInfo("o", 1, None)
    info = LockInfo("a", "held", "o", 1, 2, None, "m", (waiter,))
    assert info == pickle.loads(pickle.dumps(info))
    assert hash(info) == hash(LockInfo("a", "held", "o", 1, 2, None, "m", (waiter,)))


def test_public_things_are_documented_and_shown() -> None:
    for name in fencelock.__all__:
        value = getattr(fencelock, name)
        assert not callable(value) or value.__doc__, name
    with fencelock.connect("memory:") as client:
        assert repr(client) == "<fencelock.Client>"
        lock = client.lock("a")
        assert repr(lock) == "<fencelock.Lock 'a'>"
        assert repr(client.rlock("a")) == "<fencelock.RLock 'a'>"
        lease = lock.acquire()
        assert repr(lease) == f"<fencelock.Lease 'a' token={lease.token} held>"
        assert len(lease.owner) == 32 and lease.name == lock.name == "a"
        assert repr(lease.lost) == "<fencelock.Lost of 'a'>"
        lease.release()
        assert repr(lease) == f"<fencelock.Lease 'a' token={lease.token} not held>"
    assert repr(client) == "<fencelock.Client closed>"


def test_the_stubs_are_those_of_the_native_module(tmp_path: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "fencelock", "--ignore-disjoint-bases"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


USE = """
import fencelock, pathlib, sys
assert pathlib.Path(fencelock.__file__).is_relative_to(sys.prefix)
client = fencelock.connect("memory:")
with client.lock("orders/42", ttl=5.0) as lease:
    print(lease.token, fencelock.__version__)
"""


def wheel() -> Path:
    named = os.environ.get("FENCELOCK_TEST_WHEEL")
    found = [Path(named)] if named else list((ROOT / "target" / "wheels").glob("fencelock-*.whl"))
    if len(found) != 1:
        pytest.fail("no wheel in target/wheels: run `make python`, or set FENCELOCK_TEST_WHEEL")
    return found[0]


def test_the_wheel_has_what_it_should() -> None:
    with zipfile.ZipFile(wheel()) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
    assert "abi3" in wheel().name and "cp311" in wheel().name
    assert "fencelock/py.typed" in names and "fencelock/_native.pyi" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in text
    assert "Requires-Dist" not in text
    assert not [name for name in names if "test" in name]


def test_the_wheel_works_alone_in_a_clean_environment(tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", clean], check=True)
    python = clean / "bin" / "python"
    options = ["--quiet", "--no-index", "--no-deps"]
    install: list[str | Path] = [python, "-m", "pip", "install", *options, wheel()]
    env = {"PATH": os.environ["PATH"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(install, check=True, env=env, cwd=tmp_path)
    used = subprocess.run(
        [python, "-c", USE], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert used.stderr == ""
    assert used.stdout.split()[1] == fencelock.__version__
