"""Sends one command to a mongod and returns its answer: as much of the wire protocol as that needs.

There is no MongoDB shell on the machines that run the tests, and a driver would have to be
installed first.
"""

import socket
import struct
from typing import Any

OP_MSG = 2013
HEADER = struct.Struct("<iiii")  # length, request id, answered request id, kind of message


class CommandError(Exception):
    """The server's own refusal of a command."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer.get("errmsg", str(answer)))
        self.name = answer.get("codeName")


def command(port: int, request: dict[str, Any], timeout: float = 10.0) -> dict[str, Any]:
    """One command to the `admin` database; OSError where nobody answers in time."""
    body = struct.pack("<IB", 0, 0) + encode(request | {"$db": "admin"})
    with socket.create_connection(("127.0.0.1", port), timeout) as link:
        link.sendall(HEADER.pack(HEADER.size + len(body), 1, 0, OP_MSG) + body)
        length = HEADER.unpack(receive(link, HEADER.size))[0]
        answer = decode(receive(link, length - HEADER.size)[5:])
    if answer["ok"] != 1:
        raise CommandError(answer)
    return answer


def receive(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = link.recv(size - len(data))
        if not more:
            raise ConnectionError("mongod hung up")
        data += more
    return data


def encode(document: dict[str, Any]) -> bytes:
    """A BSON document of texts, numbers, booleans, documents and lists."""
    data = b""
    for key, value in document.items():
        name = key.encode() + b"\0"
        match value:
            case bool():
                data += b"\x08" + name + struct.pack("<?", value)
            case int():
                data += b"\x10" + name + struct.pack("<i", value)
            case str():
                text = value.encode() + b"\0"
                data += b"\x02" + name + struct.pack("<i", len(text)) + text
            case dict():
                data += b"\x03" + name + encode(value)
            case list():
                data += b"\x04" + name + encode({str(n): item for n, item in enumerate(value)})
            case _:
                raise TypeError(f"{key}: {value!r}")
    return struct.pack("<i", len(data) + 5) + data + b"\0"


def decode(data: bytes) -> dict[str, Any]:
    """Values of kinds that no caller looks at come out as bytes."""
    document: dict[str, Any] = {}
    at = 4
    while data[at]:
        kind = data[at]
        end = data.index(0, at + 1)
        name, at = data[at + 1 : end].decode(), end + 1
        size = FIXED_SIZE.get(kind)
        if size is None:
            (size,) = struct.unpack_from("<i", data, at)
            size += LENGTH_EXCLUDES.get(kind, 0)
        raw, at = data[at : at + size], at + size
        match kind:
            case 0x01:
                (document[name],) = struct.unpack("<d", raw)
            case 0x02:
                document[name] = raw[4:-1].decode()
            case 0x03:
                document[name] = decode(raw)
            case 0x04:
                document[name] = list(decode(raw).values())
            case 0x08:
                document[name] = raw != b"\0"
            case 0x10 | 0x12:
                document[name] = int.from_bytes(raw, "little", signed=True)
            case _:
                document[name] = raw
    return document


# double, object id, boolean, date, null, int32, timestamp, int64, decimal128
FIXED_SIZE = {0x01: 8, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16}
# What the length in front of the value leaves out: of a text itself, of binary data also its kind.
LENGTH_EXCLUDES = {0x02: 4, 0x05: 5}
