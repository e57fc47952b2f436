"""The calls of a Hive metastore that its locks take, over Thrift's binary protocol.

Spec: `hive_metastore.thrift` of Apache Hive 2.3 and later. Its clients for Python on the registries are generated from
the whole file, two megabytes of code, and are not released by the Hive project; five calls are all that is needed here.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import urlsplit

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from pyhudi.errors import Invalid, Unavailable

_PORT = 9083
_TIMEOUT_MS = 30_000
_STRING_MAX = 16 * 1024 * 1024
_EXCLUSIVE, _TABLE, _NO_TXN = 3, 2, 6

Field = tuple[int, int, Any]
"""A field of a struct: its number, its type of Thrift, its value. A struct is a list of fields."""


class LockState(IntEnum):
    ACQUIRED = 1
    WAITING = 2
    ABORT = 3
    NOT_ACQUIRED = 4


@dataclass(frozen=True, slots=True)
class ShownLock:
    """A lock as `show_locks` tells of it."""

    lock_id: int
    state: int
    user: str
    host: str
    agent: str


class GoneError(Exception):
    """The metastore knows no lock of this id: it has expired, or was aborted."""


class Metastore:
    """A connection to one of several metastores, made anew when it breaks. Used by one thread at a time."""

    def __init__(self, uris: str, *, tries: int) -> None:
        self._addresses = [_address(uri.strip()) for uri in uris.split(",") if uri.strip()]
        if not self._addresses:
            raise Invalid(f"hoodie.write.lock.hivemetastore.uris='{uris}': expected thrift://host:port, found none")
        self._uris, self._tries = uris, tries
        self._protocol: Any = None
        self._sequence = 0

    def lock(self, database: str, table: str, *, user: str, agent: str) -> tuple[int, int]:
        """Ask for the exclusive lock of a table. Returns its id and its state. Made once: a repetition asks twice."""
        component: list[Field] = [
            (1, TType.I32, _EXCLUSIVE), (2, TType.I32, _TABLE), (3, TType.STRING, database), (4, TType.STRING, table),
            (6, TType.I32, _NO_TXN),
        ]  # fmt: skip
        request: list[Field] = [
            (1, TType.LIST, [component]), (3, TType.STRING, user), (4, TType.STRING, socket.gethostname()[:128]),
            (5, TType.STRING, agent),
        ]  # fmt: skip
        answer = self._call("lock", request, tries=0)
        return answer[1], answer[2]

    def check_lock(self, lock_id: int) -> int:
        """The state of a lock, which is renewed by this question. Raises: GoneError."""
        state: int = self._call("check_lock", [(1, TType.I64, lock_id)], tries=self._tries)[2]
        return state

    def heartbeat(self, lock_id: int) -> None:
        """Renew a lock. Raises: GoneError."""
        self._call("heartbeat", [(1, TType.I64, lock_id)], tries=self._tries)

    def unlock(self, lock_id: int) -> None:
        """Raises: GoneError."""
        self._call("unlock", [(1, TType.I64, lock_id)], tries=self._tries)

    def show_locks(self, database: str, table: str) -> list[ShownLock]:
        request: list[Field] = [(1, TType.STRING, database), (2, TType.STRING, table)]
        shown = self._call("show_locks", request, tries=self._tries).get(1, [])
        return [
            ShownLock(lock[1], lock[5], lock.get(10, ""), lock.get(11, ""), lock.get(13, ""))
            for lock in shown
            if lock.get(2) == database and lock.get(3) == table
        ]

    def close(self) -> None:
        if self._protocol is not None:
            with suppress(TException, OSError):
                self._protocol.trans.close()
        self._protocol = None

    def _call(self, method: str, request: list[Field], *, tries: int) -> dict[int, Any]:
        for left in reversed(range(tries + 1)):
            try:
                return self._ask(method, request)
            except TApplicationException as error:
                raise Unavailable(f"the Hive metastore at {self._uris} refuses {method}: {error}") from error
            except (TException, OSError, EOFError, UnicodeDecodeError) as error:
                self.close()
                if not left:
                    raise Unavailable(
                        f"the Hive metastore at {self._uris} does not answer {method}: {error}"
                    ) from error
        raise AssertionError("the last try returns or raises")

    def _ask(self, method: str, request: list[Field]) -> dict[int, Any]:
        protocol = self._connected()
        self._sequence += 1
        protocol.writeMessageBegin(method, TMessageType.CALL, self._sequence)
        _write_struct(protocol, [(1, TType.STRUCT, request)])
        protocol.writeMessageEnd()
        protocol.trans.flush()

        _, kind, _ = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            protocol.readMessageEnd()
            raise error
        answer = _read_struct(protocol)
        protocol.readMessageEnd()

        # Field 0 is the result; the others are the exceptions that the method declares.
        thrown = [value for number, value in answer.items() if number != 0]
        if thrown:
            raise GoneError(str(thrown[0].get(1, "")))
        found: dict[int, Any] = answer.get(0, {})
        return found

    def _connected(self) -> Any:
        if self._protocol is not None:
            return self._protocol
        for at, (host, port) in enumerate(self._addresses):
            transport = TSocket(host, port)
            transport.setTimeout(_TIMEOUT_MS)
            try:
                transport.open()
            except (TException, OSError):
                if at + 1 == len(self._addresses):
                    raise
                continue
            self._protocol = TBinaryProtocol(TBufferedTransport(transport), string_length_limit=_STRING_MAX)
            return self._protocol
        raise AssertionError("there is an address")


def _address(uri: str) -> tuple[str, int]:
    parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    try:
        port = parts.port or _PORT
    except ValueError:
        port = 0
    if parts.scheme != "thrift" or not parts.hostname or not port:
        raise Invalid(f"hoodie.write.lock.hivemetastore.uris: expected thrift://host:port, found '{uri}'")
    return parts.hostname, port


def _write_struct(protocol: Any, fields: list[Field]) -> None:
    protocol.writeStructBegin("")
    for number, kind, value in fields:
        protocol.writeFieldBegin("", kind, number)
        _WRITERS[kind](protocol, value)
        protocol.writeFieldEnd()
    protocol.writeFieldStop()
    protocol.writeStructEnd()


def _write_structs(protocol: Any, structs: list[list[Field]]) -> None:
    protocol.writeListBegin(TType.STRUCT, len(structs))
    for fields in structs:
        _write_struct(protocol, fields)
    protocol.writeListEnd()


_WRITERS: dict[int, Callable[[Any, Any], None]] = {
    TType.I32: lambda protocol, value: protocol.writeI32(value),
    TType.I64: lambda protocol, value: protocol.writeI64(value),
    TType.STRING: lambda protocol, value: protocol.writeString(value),
    TType.STRUCT: _write_struct,
    TType.LIST: _write_structs,
}


def _read_struct(protocol: Any) -> dict[int, Any]:
    """The fields of a struct by number. Fields of types that no answer here has are passed over."""
    found: dict[int, Any] = {}
    protocol.readStructBegin()
    for kind, number in _fields(protocol):
        if kind in _READERS:
            found[number] = _READERS[kind](protocol)
        else:
            protocol.skip(kind)
    protocol.readStructEnd()
    return found


def _fields(protocol: Any) -> Iterator[tuple[int, int]]:
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            return
        yield kind, number
        protocol.readFieldEnd()


def _read_list(protocol: Any) -> list[Any]:
    kind, size = protocol.readListBegin()
    if kind not in _READERS:
        raise TException(f"expected a list of structs, texts or numbers, found type {kind}")
    items = [_READERS[kind](protocol) for _ in range(size)]
    protocol.readListEnd()
    return items


_READERS: dict[int, Callable[[Any], Any]] = {
    TType.BOOL: lambda protocol: protocol.readBool(),
    TType.I32: lambda protocol: protocol.readI32(),
    TType.I64: lambda protocol: protocol.readI64(),
    TType.STRING: lambda protocol: protocol.readString(),
    TType.STRUCT: _read_struct,
    TType.LIST: _read_list,
}


@contextmanager
def closing(metastore: Metastore) -> Iterator[Metastore]:
    try:
        yield metastore
    finally:
        metastore.close()
