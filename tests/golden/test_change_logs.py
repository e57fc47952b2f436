"""A change log of ours could be none to Apache Hudi: other bytes for the same changes.

The rows of each change log that 1.2.0 wrote are encoded anew, and must give the same bytes.
"""

from datetime import UTC
from pathlib import Path

import pytest

from pyhudi.format.log.block import BlockType
from pyhudi.format.log.changes import ChangeMode, change_schema
from pyhudi.format.log.data import read_batches
from pyhudi.format.log.headers import instant_time, schema_text
from pyhudi.format.log.reader import read_blocks
from pyhudi.format.log.writer import encode_change_block
from pyhudi.format.schema.conversion import without_meta_fields
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.snapshot import Snapshot, read_snapshot
from tests.support.golden_tables import GoldenTables, golden_names

NAMES = tuple(name for name in golden_names() if name.startswith("cow_cdc_ops_"))


def snapshot_of(path: Path) -> Snapshot:
    return read_snapshot(LocalStorage(str(path)), UTC, open_listing)


@pytest.mark.parametrize("name", NAMES)
def test_change_logs_are_encoded_to_the_bytes_of_apache_hudi(golden: GoldenTables, name: str) -> None:
    path = golden.get(name).path
    mode = snapshot_of(path).config.change_mode
    table_schema = without_meta_fields(snapshot_of(path).schema_text or "")
    files = sorted(path.rglob(".*.cdc"))
    assert len(files) >= 10

    for file in files:
        content = file.read_bytes()
        (block,) = read_blocks(content, path=str(file))
        assert block.type is BlockType.CDC_DATA
        assert mode is not None
        schema = change_schema(mode, table_schema)
        assert schema == schema_text(block)
        assert encode_change_block(read_batches(block), instant_time=instant_time(block), schema_text=schema) == content


def test_the_mode_is_what_the_table_states(golden: GoldenTables) -> None:
    modes = {name: snapshot_of(golden.get(name).path).config.change_mode for name in NAMES}
    assert modes == {
        "cow_cdc_ops_simple_data_before_after_v9_h120": ChangeMode.BEFORE_AFTER,
        "cow_cdc_ops_simple_data_before_v9_h120": ChangeMode.BEFORE,
        "cow_cdc_ops_simple_op_key_only_v9_h120": ChangeMode.KEYS,
    }
    assert snapshot_of(golden.get("cow_part_v9_h120").path).config.change_mode is None
