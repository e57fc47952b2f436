"""What completed instants say, as files of JSON in a folder of this machine."""

import json
import os
from collections.abc import Collection

from pyhudi.api.table import HudiTable
from pyhudi.errors import CorruptFile, Invalid, NotFound
from pyhudi.format.avro.container import decode_record, split_container
from pyhudi.format.names import PROPERTIES
from pyhudi.storage.open import open_storage, parse_location
from pyhudi.storage.uris import LocalUri, parse_uri


def export_instants(
    table: HudiTable, folder: str, *, actions: Collection[str], count_max: int | None, newest_first: bool
) -> int:
    """Write a file for each completed instant of the active timeline with one of these actions. Returns how many.

    A file has the name of the instant's own file. `count_max`: no more than these; None: all. `newest_first`: which of
    them are taken first. One get and one put each.

    Raises: Invalid where `folder` is no folder of this machine, or lies in a table: there such a file is an instant.

    Seen: Apache Hudi 1.2.0 copies commits of version 9 as they are, in Avro; here they are JSON, as all others.
    """
    location = parse_location(folder)
    if not isinstance(parse_uri(location.uri), LocalUri) or not os.path.isdir(location.uri):
        raise Invalid(f"local_folder '{folder}': expected a folder of this machine, found none; make it first")
    inside = _table_around(os.path.realpath(location.uri))
    if inside is not None:
        raise Invalid(f"local_folder '{folder}': expected a folder outside of tables, found one in table '{inside}'")
    target = open_storage(location)
    snapshot = table._access.snapshot()
    layout = snapshot.timeline.layout
    chosen = [one for one in snapshot.timeline.instants if one.is_completed and one.comparable_action in actions]
    if newest_first:
        chosen.reverse()

    exported = 0
    for instant in chosen[:count_max]:
        path = layout.path(instant)
        try:
            content = snapshot.storage.get(path)
        except NotFound:  # archived since the timeline was read
            continue
        target.put(layout.format(instant), _as_json(content, path))
        exported += 1
    return exported


def _table_around(folder: str) -> str | None:
    """The path of the table that a folder of this machine lies in, if any."""
    while not os.path.isfile(os.path.join(folder, *PROPERTIES.split("/"))):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _as_json(content: bytes, path: str) -> bytes:
    """The record of an Avro container as JSON; what is JSON stays. Raises: CorruptFile."""
    if content[:1] in (b"{", b""):
        return content
    text, body, offset = split_container(content, path=path)
    try:
        record = decode_record(body, text)
    except (ValueError, KeyError, TypeError, EOFError, IndexError) as error:
        raise CorruptFile(path, offset, expected="one record of Avro", found=repr(error)) from error
    return json.dumps(record, indent=2, default=repr).encode()
