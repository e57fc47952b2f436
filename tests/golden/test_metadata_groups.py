"""Keys could be placed in other file groups of the metadata table than those in which Apache Hudi looks for them."""

from datetime import UTC

import pytest

from pyhudi.format.metadata.keys import KeyHashing
from pyhudi.metadata.derive.changes import CELLS
from pyhudi.metadata.kinds.registry import get_kind
from pyhudi.metadata.store.current_cells import read_current_cells
from pyhudi.metadata.store.files_partition import open_listing
from pyhudi.metadata.store.groups import group_ids, list_groups, rows_by_group
from pyhudi.metadata.store.table import open_metadata_table
from pyhudi.storage.local import LocalStorage
from pyhudi.table.view.snapshot import read_snapshot
from tests.support.golden_tables import GoldenTables


@pytest.mark.parametrize("name", ["mor_mdt_all_v8_h102", "mor_mdt_all_v9_h120", "mor_secondary_index_v9_h120"])
def test_keys_that_apache_hudi_wrote_lie_in_the_groups_that_we_would_choose(golden: GoldenTables, name: str) -> None:
    snapshot = read_snapshot(LocalStorage(str(golden.get(name).path)), UTC, open_listing)
    config, timeline, table = snapshot.config, snapshot.timeline, open_metadata_table(snapshot.storage, UTC)
    seen = 0
    for partition in set(config.metadata_partitions) - {"files"}:
        groups = list_groups(table, partition)
        assert groups == group_ids(table.config.version, partition, len(groups))
        for piece in table.slices(partition):
            cells = read_current_cells(table, piece, timeline, stats_type=get_kind(partition).stats_type)
            assert cells.schema == CELLS
            keys = cells.column("key").combine_chunks()
            by_prefix = config.version.number == 9 and partition.startswith("secondary_index_")
            hashing = KeyHashing.SECONDARY_PREFIX if by_prefix else KeyHashing.WHOLE
            rows = rows_by_group(keys, len(groups), hashing)
            assert len(rows[groups.index(piece.file_id)]) == len(keys)
            seen += len(keys)
    assert seen
