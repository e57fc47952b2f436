"""How a table spells timestamps in partition paths: as microseconds, or as a date and a time.

Apache Hudi's SQL writes `dt=2021-05-20 01%3A02%3A03` and reads a null in such a column from any other path. Its
DataFrame writer writes `dt=1621472523000000` into the same table. No property tells, so the stored paths do.
"""

import re
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pyhudi.format.keys.record_keys import KeySpec, partition_values
from pyhudi.table.view.snapshot import Snapshot

_SQL: Final = re.compile(r"[0-9]{4,}-[0-9]{2}-[0-9]{2} [0-9]{2}(?:%3A|:)[0-9]{2}(?:%3A|:)[0-9]{2}")


def with_path_times(spec: KeySpec, snapshot: Snapshot) -> KeySpec:
    """The keys in the spelling of the stored paths. A table without any is as its maker: SQL states columns first.

    Requests: the table's partitions, where a partition column holds timestamps.
    """
    names = tuple(name for name in spec.partition_by if name not in spec.time_based and _has_zone(snapshot, name))
    if not names or spec.own_generator:
        return spec
    texts = [
        text
        for path in snapshot.listing.partitions()
        for name, text in partition_values(path, spec).items()
        if name in names and text is not None
    ]
    is_sql = any(map(_SQL.fullmatch, texts)) if texts else snapshot.config.create_schema is not None
    return replace(spec, sql_times=names) if is_sql else spec


def _has_zone(snapshot: Snapshot, name: str) -> bool:
    if name not in snapshot.schema.names:
        return False
    kind = snapshot.schema.field(name).type
    return pa.types.is_timestamp(kind) and kind.tz is not None
