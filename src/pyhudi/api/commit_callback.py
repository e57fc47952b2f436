"""Telling an HTTP service of each commit, after it has landed: whatever goes wrong here fails no write.

Spec: none of the format's; the options and the message are those of Apache Hudi's HTTP callback.
"""

import http.client
import json
import logging
import re
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from pyhudi.errors import HudiError, Invalid
from pyhudi.format.commit import write_stat_json
from pyhudi.model.commit import CommitMetadata
from pyhudi.model.instant import Instant
from pyhudi.model.option_values import OptionValues
from pyhudi.table.commits import SCHEMA, read_commit
from pyhudi.table.snapshot import Snapshot

PREFIX = "hoodie.write.commit.callback."
API_KEY_HEADER = "HUDI-CALLBACK-KEY"

_TIMEOUT_SECONDS = 30
_API_KEY = "hudi_write_commit_http_callback"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

log = logging.getLogger("pyhudi")


@dataclass(frozen=True, slots=True)
class CommitCallback:
    """Where commits are told of. Defaults are Apache Hudi's.

    `timeout_seconds`: for the connection and for each read; the write's answer waits that long at most, or a little
    more. `headers`: sent beside the API key's own.
    """

    url: str
    timeout_seconds: int = _TIMEOUT_SECONDS
    api_key: str = _API_KEY
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self | None:
        """The callback that options ask for; None where it is off, as by default.

        Raises: Invalid for one that could never be sent: before the write, when it can still be mended.
        """
        o = OptionValues(options)
        if not o.flag(f"{PREFIX}on", False):
            return None
        url = options.get(f"{PREFIX}http.url", "").strip()
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        if not is_address or not _is_printable(url, spaces=False):
            raise Invalid(
                f"option '{PREFIX}http.url': expected an address of http or https, without a user in it, for "
                f"'{PREFIX}on' is true; found one of scheme '{parts.scheme}'"
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
    def place(self) -> str:
        """The address without its query, which may hold a secret: for the log."""
        return urlsplit(self.url)._replace(query="", fragment="").geturl()

    def send(self, message: Mapping[str, object]) -> None:
        """Post a message as JSON. A failure, whatever its kind, is a line in the log."""
        request = urllib.request.Request(self.url, json.dumps(message).encode(), method="POST")
        request.add_header("Content-Type", "application/json; charset=UTF-8")
        for name, value in (*self.headers, (API_KEY_HEADER, self.api_key)):
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_seconds) as answer:
                log.info("commit '%s': told %s (%s)", message["commitTime"], self.place, answer.status)
        except (OSError, http.client.HTTPException, ValueError) as error:
            log.warning(
                "commit '%s' landed, but %s could not be told of it: %s", message["commitTime"], self.place, error
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
        log.warning("commit '%s' landed, but %s was not told: %s", requested, callback.place, error)
        return
    location = snapshot.storage.location.uri
    callback.send(callback_message(instant, metadata, table_name=snapshot.config.name, base_path=location))


def callback_message(
    instant: Instant, metadata: CommitMetadata, *, table_name: str, base_path: str
) -> dict[str, object]:
    """What is told of a commit.

    Seen: 1.0.2 names these members in this order, but for the last two gives only whether there are any
    (`{"present": true}`), for lack of a serializer; here they are what they say.
    """
    stats = [stat for of in metadata.partition_to_write_stats.values() for stat in of]
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
    for piece in text.split(";"):
        if not piece.strip():
            continue
        name, colon, value = (part.strip() for part in piece.partition(":"))
        if not colon or not value or not _HEADER_NAME.fullmatch(name) or not _is_printable(value):
            raise Invalid(
                f"option '{PREFIX}http.custom.headers': expected 'name:value;name:value' in printable ASCII, found "
                f"'{name}' without one of the two, or with another character"
            )
        headers.append((name, value))
    return tuple(headers)


def _is_printable(text: str, *, spaces: bool = True) -> bool:
    return all(" " < char <= "~" or (spaces and char == " ") for char in text)
