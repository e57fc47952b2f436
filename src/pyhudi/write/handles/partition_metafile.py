"""The file that marks a folder as a partition of the table."""

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.format.names import PARTITION_METAFILE, join
from pyhudi.format.properties import encode_partition_metadata, partition_metadata
from pyhudi.storage.protocol import Storage


def put_partition_metafile(
    store: Storage, partition: str, *, requested: str, epoch_ms: int, is_parquet: bool = False
) -> None:
    """Put the file, if it is not there. `is_parquet`: as a Parquet file without rows, whose footer says the same.

    Spec: format/layout.md section 3.
    """
    path = join(partition, PARTITION_METAFILE)
    if not is_parquet:
        store.put_new(path, encode_partition_metadata(requested=requested, partition=partition, epoch_ms=epoch_ms))
        return
    path = f"{path}.parquet"
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema([("dummyint", pa.int64())]), store_schema=False) as writer:
        writer.add_key_value_metadata(partition_metadata(requested=requested, partition=partition))
    store.put_new(path, sink.getvalue().to_pybytes())
