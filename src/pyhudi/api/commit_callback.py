"""Telling the caller and an HTTP service of each commit, after it has landed: whatever goes wrong fails no write.

The service gets credentials, so its address comes from the caller alone, never from the table, and redirects are not
followed. One deadline holds for the whole exchange, so that a slow answer holds no write up.

Spec: none of the format's; the options and the message are those of Apache Hudi's HTTP callback.
"""

import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

from pyhudi.errors import HudiError, Invalid, error_text
from pyhudi.format.timeline.action_files import write_stat_json
from pyhudi.format.timeline.instant import Instant
from pyhudi.format.timeline.records import CommitMetadata
from pyhudi.options.values import OptionValues
from pyhudi.table.view.commits import SCHEMA, read_commit
from pyhudi.table.view.snapshot import Snapshot
from pyhudi.write.operation import WriteResult

OnCommit = Callable[[WriteResult], None]

PREFIX = "hoodie.write.commit.callback."
API_KEY_HEADER = "HUDI-CALLBACK-KEY"

_TIMEOUT_SECONDS = 30
_API_KEY = "hudi_write_commit_http_callback"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class CommitCallback:
    """Where commits are told of. Defaults are Apache Hudi's.

    `timeout_seconds`: for the whole exchange, from the look-up of the host's name to the status of the answer.
    `headers`: sent beside the API key's own.
    """

    url: str = field(repr=False)
    timeout_seconds: int = _TIMEOUT_SECONDS
    api_key: str = field(default=_API_KEY, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self | None:
        """The callback that options ask for; None where it is off, as by default.

        `options`: those of the write and of `open`, without the table's properties.
        Raises: Invalid for one that could never be sent: before the write, when it can still be mended.
        """
        o = OptionValues(options)
        if not o.flag(f"{PREFIX}on", False):
            return None
        url = options.get(f"{PREFIX}http.url", "").strip()
        if not _is_address(url):
            raise Invalid(
                f"option '{PREFIX}http.url': expected an address of http or https, without a user in it, for "
                f"'{PREFIX}on' is true; found one of scheme '{url.partition(':')[0] if ':' in url else ''}'"
            )
        api_key = options.get(f"{PREFIX}http.api.key", "").strip() or _API_KEY
        if not _is_printable(api_key):
            raise Invalid(f"option '{PREFIX}http.api.key': expected printable ASCII, found another character")
        return cls(
            url=url,
            timeout_seconds=o.count(f"{PREFIX}http.timeout.seconds", _TIMEOUT_SECONDS),
            api_key=api_key,
            headers=_headers(options.get(f"{PREFIX}http.custom.headers", "")),
        )

    @property
    def target(self) -> str:
        """The address without its query, which may hold a secret: for the log."""
        return urlsplit(self.url)._replace(query="", fragment="").geturl()

    def send(self, message: Mapping[str, object]) -> None:
        """Post a message as JSON. A failure, whatever its kind, is a line in the log."""
        outcome: list[str] = []
        connection = self._connection()
        worker = threading.Thread(target=self._post, args=(connection, message, outcome), daemon=True)
        worker.start()
        worker.join(self.timeout_seconds)

        failure = outcome[0] if outcome else f"no answer within {self.timeout_seconds} seconds"
        if worker.is_alive():
            _hang_up(connection)
        if failure:
            log.warning(
                "commit '%s' landed, but %s could not be told of it: %s", message["commitTime"], self.target, failure
            )
        else:
            log.info("commit '%s': told %s", message["commitTime"], self.target)

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        return kind(parts.hostname or "", parts.port, timeout=self.timeout_seconds)

    def _post(self, connection: http.client.HTTPConnection, message: Mapping[str, object], outcome: list[str]) -> None:
        """Send the message and put into `outcome` what went wrong, or an empty text."""
        parts = urlsplit(self.url)
        address = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        content = {"Content-Type": "application/json; charset=UTF-8"}
        try:
            connection.request(
                "POST",
                address,
                body=json.dumps(message).encode(),
                headers={**content, **dict(self.headers), API_KEY_HEADER: self.api_key},
            )
            status = connection.getresponse().status
            outcome.append("" if 200 <= status < 300 else _refusal(status))
        except (OSError, http.client.HTTPException, ValueError) as error:
            outcome.append(str(error) or type(error).__name__)
        finally:
            connection.close()


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False
    return (
        parts.scheme in ("http", "https") and has_host and "@" not in parts.netloc and _is_printable(url, spaces=False)
    )


def _refusal(status: int) -> str:
    return f"it answered {status}" + ("; redirects are not followed" if 300 <= status < 400 else "")


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """End an exchange that another thread waits for. Its socket may be closed already."""
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def refuse_stored_callback(properties: Mapping[str, str]) -> None:
    """Refuse a callback among the properties of a new table. Raises: Invalid.

    Whoever may write a table's properties would say where the credentials of its writers go.
    """
    named = [name for name in properties if name.startswith(PREFIX)]
    if named:
        raise Invalid(
            f"property '{named[0]}': a commit callback is not stored with a table; "
            "give it to each write or to HudiTable.open as an option"
        )


def tell_of_commit(callback: CommitCallback, read: Callable[[], Snapshot], requested: str) -> None:
    """Tell of a completed write, by what its completed file says. `read`: gives the table as it is now.

    Raises nothing that the world does: the write has landed, and whoever repeats it would write its rows twice.
    """
    try:
        snapshot = read()
        instant = snapshot.timeline.get_completed(requested)
        metadata = read_commit(snapshot.storage, snapshot.timeline, instant)
    except HudiError as error:
        log.warning("commit '%s' landed, but %s was not told: %s", requested, callback.target, error)
        return
    location = snapshot.storage.location.uri
    callback.send(callback_message(instant, metadata, table_name=snapshot.config.name, base_path=location))


def tell_caller(on_commit: OnCommit, result: WriteResult) -> None:
    """Tell the caller's own function of a write that has landed. Raises nothing that it raises, as `tell_of_commit`."""
    try:
        on_commit(result)
    except Exception as error:  # of any kind
        said = ("commit '%s' landed, but on_commit failed: %s", result.requested, error_text(error))
        try:
            log.warning(*said, exc_info=error)
        except Exception:  # of any kind: the trace is asked of the error
            log.warning(*said)


def callback_message(
    instant: Instant, metadata: CommitMetadata, *, table_name: str, base_path: str
) -> dict[str, object]:
    """What is told of a commit.

    Seen: 1.0.2 names these members in this order, but for the last two gives only whether there are any
    (`{"present": true}`), for lack of a serializer; here they are what they say.
    """
    stats = [stat for partition_stats in metadata.partition_to_write_stats.values() for stat in partition_stats]
    return {
        "commitTime": instant.requested,
        "tableName": table_name,
        "basePath": base_path,
        "hoodieWriteStat": [write_stat_json(stat) for stat in stats],
        "commitActionType": instant.action,
        "extraMetadata": {key: text for key, text in metadata.extra_metadata.items() if key != SCHEMA},
    }


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    """Headers out of `name:value;name:value`. A value may hold further colons."""
    headers = []
    for pair in text.split(";"):
        if not pair.strip():
            continue
        name, colon, value = (part.strip() for part in pair.partition(":"))
        if not colon or not value or not _HEADER_NAME.fullmatch(name) or not _is_printable(value):
            raise Invalid(
                f"option '{PREFIX}http.custom.headers': expected 'name:value;name:value' in printable ASCII, found "
                f"'{name}' without one of the two, or with another character"
            )
        headers.append((name, value))
    return tuple(headers)


def _is_printable(text: str, *, spaces: bool = True) -> bool:
    return all(" " < char <= "~" or (spaces and char == " ") for char in text)
