"""An estimate of how many rows file slices have, without reading the rows."""

from collections.abc import Sequence
from contextlib import closing

from pyhudi.format.names import join
from pyhudi.storage.protocol import Storage
from pyhudi.table.slices.parquet_files import open_parquet
from pyhudi.table.view.file_system_view import FileSlice

_SAMPLE_MAX = 64
_ROW_SIZE = 100


def estimate_rows(storage: Storage, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Estimated rows by partition.

    The footers of some base files give the average bytes per row; the sizes of all base files then give the rows.
    Logs are counted at 100 bytes per row, as if each of their rows was new. Cost: at most 64 footers, evenly spread
    over the slices.
    """
    bases = [file_slice for file_slice in slices if file_slice.base_file is not None]
    sample = bases[:: max(1, -(-len(bases) // _SAMPLE_MAX))]

    rows, size_bytes = 0, 0
    for file_slice in sample:
        assert file_slice.base_file is not None
        with closing(open_parquet(storage, join(file_slice.partition, file_slice.base_file.name.format()))) as file:
            rows += file.metadata.num_rows
        size_bytes += file_slice.base_file.size_bytes

    per_row = size_bytes / rows if rows else _ROW_SIZE

    found: dict[str, int] = {}
    for file_slice in slices:
        base_bytes = file_slice.base_file.size_bytes if file_slice.base_file is not None else 0
        log_bytes = sum(log.size_bytes for log in file_slice.log_files)
        found[file_slice.partition] = found.get(file_slice.partition, 0) + int(
            base_bytes / per_row + log_bytes / _ROW_SIZE
        )
    return found
