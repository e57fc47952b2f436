"""A file of the timeline could be read as another action or state than Apache Hudi means by it, or be overlooked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import Unsupported
from pyhudi.format.timeline.instant import Instant
from pyhudi.timeline.layout import TimelineLayout, timeline_layout

LAYOUT_1 = timeline_layout({"hoodie.timeline.layout.version": "1"})
LAYOUT_2 = timeline_layout({"hoodie.timeline.layout.version": "2"})
B, C = "20261121105911160", "20261121105917000"

# action -> names of requested, inflight, completed; format/timeline.md section 3
NAMES = {
    "commit": ("commit.requested", "inflight", "commit"),
    "deltacommit": ("deltacommit.requested", "deltacommit.inflight", "deltacommit"),
    "compaction": ("compaction.requested", "compaction.inflight", "commit"),
    "logcompaction": ("logcompaction.requested", "logcompaction.inflight", "deltacommit"),
    "replacecommit": ("replacecommit.requested", "replacecommit.inflight", "replacecommit"),
    "clustering": ("clustering.requested", "clustering.inflight", "replacecommit"),
    "clean": ("clean.requested", "clean.inflight", "clean"),
    "rollback": ("rollback.requested", "rollback.inflight", "rollback"),
    "restore": ("restore.requested", "restore.inflight", "restore"),
    "savepoint": (None, "savepoint.inflight", "savepoint"),
    "indexing": ("indexing.requested", "indexing.inflight", "indexing"),
    "schemacommit": ("schemacommit.requested", "schemacommit.inflight", "schemacommit"),
}
PENDING = [
    (action, state, name)
    for action, names in NAMES.items()
    for state, name in zip(("REQUESTED", "INFLIGHT"), names, strict=False)
    if name is not None
]
COMPLETED = [(action, names[2]) for action, names in NAMES.items()]


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2], ids=["layout 1", "layout 2"])
@pytest.mark.parametrize("action, state, name", PENDING)
def test_pending_instants_are_named_alike_in_both_layouts(
    layout: TimelineLayout, action: str, state: str, name: str
) -> None:
    instant = Instant(B, action, state)  # type: ignore[arg-type]

    assert layout.parse(f"{B}.{name}") == instant
    assert layout.format(instant) == f"{B}.{name}"


@pytest.mark.parametrize("action, name", COMPLETED)
def test_completed_instants_of_layout_1_carry_one_time(action: str, name: str) -> None:
    assert LAYOUT_1.parse(f"{B}.{name}") == Instant(B, name, "COMPLETED")
    assert LAYOUT_1.format(Instant(B, action, "COMPLETED", C)) == f"{B}.{name}"


@pytest.mark.parametrize("action, name", COMPLETED)
def test_completed_instants_of_layout_2_carry_their_completion(action: str, name: str) -> None:
    assert LAYOUT_2.parse(f"{B}_{C}.{name}") == Instant(B, name, "COMPLETED", C)
    assert LAYOUT_2.format(Instant(B, action, "COMPLETED", C)) == f"{B}_{C}.{name}"


@pytest.mark.parametrize("name", sorted({name for _, name in COMPLETED}))
def test_a_completed_file_of_layout_2_without_completion_is_from_before_an_upgrade(name: str) -> None:
    instant = LAYOUT_2.parse(f"{B}.{name}")

    assert instant == Instant(B, name, "COMPLETED", None, is_legacy=True)
    assert LAYOUT_2.format(Instant(B, name, "COMPLETED", C, is_legacy=True)) == f"{B}.{name}"


@pytest.mark.parametrize("layout", [LAYOUT_1, LAYOUT_2], ids=["layout 1", "layout 2"])
@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "hoodie.properties.backup",
        "history",
        "_version_",
        "manifest_1",
        f"{B}",
        f"{B}.",
        f"{B}.unknown",
        f"{B}.unknown.requested",
        f"{B}.commit.done",
        f"{B}.commit.inflight",
        f"{B}.compaction",
        f"{B}.logcompaction",
        f"{B}.clustering",
        f"{B}.requested",
        f"{B}_{C}.inflight",
        f"{B}_{C}.commit.requested",
        f"{B}_{C}_{C}.commit",
        f"{B}_.commit",
        f".{B}.commit.crc",
        f"{B}.commit.crc",
        f"{B}.commit\n",
        f"x{B}.commit",
        "٢٠٢٦.commit",
    ],
)
def test_other_files_of_the_folder_are_no_instants(layout: TimelineLayout, name: str) -> None:
    assert layout.parse(name) is None


def test_layout_1_knows_no_completion_times() -> None:
    assert LAYOUT_1.parse(f"{B}_{C}.commit") is None


@given(
    st.from_regex(r"[0-9]{1,3}(_[0-9]{1,3})?\.[a-z]{1,9}(\.(requested|inflight))?\n?", fullmatch=True)
    | st.builds(
        lambda times, action, suffix: f"{times}.{action}{suffix}",
        st.sampled_from([B, f"{B}_{C}"]),
        st.sampled_from([*NAMES, "inflight"]),
        st.sampled_from(["", ".requested", ".inflight"]),
    ),
    st.sampled_from([LAYOUT_1, LAYOUT_2]),
)
def test_what_parses_formats_to_the_same_name(name: str, layout: TimelineLayout) -> None:
    instant = layout.parse(name)

    assert instant is None or layout.format(instant) == name


def test_folders_are_those_that_the_properties_name() -> None:
    assert (LAYOUT_1.folder, LAYOUT_1.history_folder) == (".hoodie", ".hoodie/archived")
    assert (LAYOUT_2.folder, LAYOUT_2.history_folder) == (".hoodie/timeline", ".hoodie/timeline/history")
    assert timeline_layout({"hoodie.archivelog.folder": "history"}).history_folder == ".hoodie/history"
    named = {"hoodie.timeline.layout.version": "2", "hoodie.timeline.path": "t", "hoodie.timeline.history.path": "h"}
    assert timeline_layout(named).history_folder == ".hoodie/t/h"
    assert LAYOUT_2.path(Instant(B, "commit", "INFLIGHT")) == f".hoodie/timeline/{B}.inflight"


@pytest.mark.parametrize("version", ["0", "3", "two", ""])
def test_an_unknown_layout_is_refused_by_name(version: str) -> None:
    with pytest.raises(Unsupported, match=rf"hoodie\.timeline\.layout\.version={version}: expected 1 or 2"):
        timeline_layout({"hoodie.timeline.layout.version": version})
