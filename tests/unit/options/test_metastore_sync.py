"""A write could tell a metastore of other names than it was asked for, or of some without being asked."""

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.metastore_sync import MetastoreSyncSettings, refuse_another_name, without_sync

SYNC = "hoodie.datasource.hive_sync."
ON = {f"{SYNC}enable": "true", "hoodie.table.name": "Rides"}
ALSO_PLAIN = "hoodie.meta.sync.sync_snapshot_with_table_name"


def asked(**options: str) -> MetastoreSyncSettings:
    found = MetastoreSyncSettings.from_options({**ON, **{f"{SYNC}{name}": value for name, value in options.items()}})
    assert found is not None
    return found


def test_nothing_is_told_unless_a_write_asks() -> None:
    for options in ({}, {f"{SYNC}enable": "false"}, {f"{SYNC}database": "d"}, {f"{SYNC}enable": ""}):
        assert MetastoreSyncSettings.from_options({"hoodie.table.name": "t", **options}) is None
    other = {"hoodie.table.name": "t", "hoodie.datasource.meta.sync.enable": "true"}
    assert MetastoreSyncSettings.from_options(other) == MetastoreSyncSettings(table="t")
    assert without_sync({**ON, **other, f"{SYNC}mode": "hms", ALSO_PLAIN: "true", "a": 1}) == {
        "hoodie.table.name": "t", "a": 1,
    }  # fmt: skip


def test_names_are_those_of_apache_hudi() -> None:
    assert asked() == MetastoreSyncSettings(table="rides")
    assert (asked(database="Lake", table="T").database, asked(table="T").table) == ("lake", "t")
    assert asked().names("", has_logs=False) == {"rides": False}
    assert asked().names("", has_logs=True) == {"rides": False, "rides_rt": False, "rides_ro": True}
    assert asked(skip_ro_suffix="true").names("", has_logs=True)["rides"] is True
    for strategy, is_base_files in (("ro", True), ("RT", False)):
        assert asked(**{"table.strategy": strategy}).names("", has_logs=True) == {"rides": is_base_files}
        assert asked(**{"table.strategy": strategy}).names("", has_logs=False) == {"rides": False}

    only = MetastoreSyncSettings.from_options({f"{SYNC}enable": "true", ALSO_PLAIN: "false"})
    assert only is not None
    assert only.names("Own", has_logs=True) == {"own_rt": False, "own_ro": True}
    with pytest.raises(Invalid, match="table's name"):
        only.names("", has_logs=True)


def test_what_cannot_be_told_is_refused() -> None:
    with pytest.raises(Unsupported, match="HiveSyncTool"):
        MetastoreSyncSettings.from_options({**ON, "hoodie.meta.sync.client.tool.class": "a.AwsGlueCatalogSyncTool"})
    for options in ({"enable": "perhaps"}, {"table.strategy": "some"}, {"skip_ro_suffix": "x"}):
        with pytest.raises(Invalid, match="hive_sync"):
            asked(**options)
    refuse_another_name({**ON, f"{SYNC}table": "T", f"{SYNC}database": "d"}, ("D", "t"))
    refuse_another_name({**ON, f"{SYNC}database": "d"}, ("t",))
    refuse_another_name({f"{SYNC}table": "left.over"}, ("t",))
    for name, said in ((("d", "t"), "u"), (("t",), "u")):
        with pytest.raises(Invalid, match="expected 't'"):
            refuse_another_name({**ON, f"{SYNC}table": said}, name)
