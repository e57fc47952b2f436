"""One question to the metadata table: first in a fresh process, then again and again in the warm one, as JSON.

python -m bench.metadata_probe TABLE QUESTION ARGUMENT REPEATS

The same questions as `java/MetadataProbe.java` asks Apache Hudi.
"""

from __future__ import annotations

import time

PROCESS_STARTED = time.perf_counter()

import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402

import pyarrow as pa  # noqa: E402

from pyhudi.api import HudiTable, TableMetadata  # noqa: E402
from pyhudi.metadata.kinds.record_index import locate_records  # noqa: E402
from pyhudi.metadata.store.files_partition import read_files_partition  # noqa: E402
from pyhudi.metadata.store.indexes import open_indexes  # noqa: E402
from pyhudi.metadata.store.table import open_metadata_table  # noqa: E402

IMPORTED = time.perf_counter()


def question(path: str, name: str, argument: str) -> Callable[[], int]:
    """What to call; opening is part of the first call, as there."""
    if name == "query":
        # What a scan plans before it opens a file: these files are empty.
        return lambda: len(HudiTable.open(path).scan(columns=["id"], where=f"part = '{argument}'")._plan.files)
    if name == "create":
        return lambda: len(TableMetadata.open(path).create().after)
    table = HudiTable.open(path, options={"hoodie.metadata.enable": "false"})
    snapshot = table._access.snapshot()
    if name == "keys":
        keys = pa.array(Path(argument).read_text().splitlines())
        indexes = open_indexes(snapshot.storage, snapshot.config, snapshot.timeline, snapshot.zone)
        assert indexes is not None
        return lambda: len(locate_records(indexes, keys) or ())
    listing = read_files_partition(open_metadata_table(snapshot.storage, snapshot.zone), snapshot.timeline)
    if name == "partitions":
        return lambda: len(listing.partitions())
    if name == "files":
        return lambda: len(listing.files(argument))
    assert name == "all", name
    return lambda: len(listing.all_files())


def main() -> None:
    path, name, argument, repeats = sys.argv[1:]
    started = time.perf_counter()
    ask = question(path, name, argument)
    count = ask()
    first_s = time.perf_counter() - started
    warm_s = []
    for _ in range(int(repeats)):
        started = time.perf_counter()
        assert ask() == count
        warm_s.append(time.perf_counter() - started)
    answer = {
        "first_s": first_s,
        "warm_s": warm_s,
        "count": count,
        "import_s": IMPORTED - PROCESS_STARTED,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
