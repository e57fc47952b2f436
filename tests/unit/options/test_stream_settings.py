"""A stream could begin elsewhere than its options say, or an option that means nothing to a stream could be ignored."""

from typing import Any

import pytest

from pyhudi.errors import Invalid, Unsupported
from pyhudi.options.stream_settings import StreamSinkSettings, StreamSourceSettings

SINK = "hoodie.datasource.write.streaming."
START = "hoodie.datasource.streaming.startOffset"
BEGIN = "hoodie.datasource.read.begin.instanttime"
FORM = "hoodie.datasource.query.incremental.format"
QUERY = "hoodie.datasource.query.type"


@pytest.mark.parametrize(
    "option,text,field,value",
    [
        ("retry.count", "5", "tries_max", 5),
        ("retry.interval.ms", "0", "retry_wait_ms", 0),
        ("ignore.failed.batch", "true", "passes_failed", True),
        ("checkpoint.identifier", " trips ", "identifier", "trips"),
        ("disable.compaction", "true", "compacts", False),
    ],
)
def test_an_option_of_a_sink_arrives_in_its_field(option: str, text: str, field: str, value: object) -> None:
    assert getattr(StreamSinkSettings.from_options({SINK + option: text}), field) == value
    assert StreamSinkSettings.from_options({}) == StreamSinkSettings()
    assert StreamSinkSettings() == StreamSinkSettings(3, 2_000, False, True, "")


def test_compaction_beside_a_stream_is_an_option_of_apache_hudi() -> None:
    assert not StreamSinkSettings.from_options({"hoodie.datasource.compaction.async.enable": "false"}).compacts


@pytest.mark.parametrize(
    "options,found",
    [
        ({}, StreamSourceSettings()),
        ({START: "latest"}, StreamSourceSettings(start="latest")),
        ({"startOffset": "LATEST"}, StreamSourceSettings(start="latest")),
        ({BEGIN: "20261101000000000"}, StreamSourceSettings(start="20261101000000000")),
        ({START: "2026-11-01", "startoffset": "2026-11-01"}, StreamSourceSettings(start="2026-11-01")),
        ({"maxCommitsPerTrigger": 2}, StreamSourceSettings(commits_max=2)),
        ({"MAXBYTESPERTRIGGER": "9"}, StreamSourceSettings(bytes_max=9)),
        ({QUERY: "incremental", FORM: "cdc"}, StreamSourceSettings(wants_changes=True)),
        ({FORM: "cdc"}, StreamSourceSettings(wants_changes=True)),
        ({QUERY: "snapshot", FORM: "cdc"}, StreamSourceSettings()),
        ({"hoodie.metadata.enable": "false"}, StreamSourceSettings(metadata_enabled=False)),
    ],
)
def test_an_option_of_a_source_arrives_in_its_field(options: dict[str, Any], found: StreamSourceSettings) -> None:
    assert StreamSourceSettings.from_options(options) == found


@pytest.mark.parametrize(
    "options,text",
    [
        ({START: "latest", "startOffset": "earliest"}, "one start"),
        ({"maxCommitsPerTrigger": "0"}, "at least 1"),
        ({"maxBytesPerTrigger": "much"}, "a whole number"),
        ({"hoodie.datasource.read.end.instanttime": "20261101"}, "no end"),
        ({"as.of.instant": "20261101"}, "no end"),
        ({QUERY: "read_optimized"}, "'snapshot' or 'incremental'"),
        ({"maxFilesPerTrigger": "1"}, "unknown"),
        ({"hoodie.datasource.read.incr.filters": "a = 1"}, "filter the DataFrame"),
    ],
)
def test_what_means_nothing_to_a_stream_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises((Invalid, Unsupported), match=text):
        StreamSourceSettings.from_options(options)
