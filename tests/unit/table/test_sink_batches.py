"""A batch of a stream could be stored twice, or be taken for one that another stream has stored, and be lost."""

import json

import pytest

from pyhudi.errors import CorruptFile, Invalid
from pyhudi.table.view.sink_batches import (
    SINK_CHECKPOINT,
    SINK_QUERY,
    NewestBatches,
    SinkBatch,
    Stream,
    batch_text,
    batches_in,
)

OURS = Stream("q1", "")
NAMED = Stream("q1", "trips")


def test_a_batch_is_spelled_as_apache_hudi_spells_it() -> None:
    texts = OURS.batch(5).commit_texts()

    assert texts == {SINK_CHECKPOINT: '{"default_single_writer":"5"}', SINK_QUERY: "q1"}
    assert batches_in(texts, instant="1") == (OURS.batch(5),)
    assert NAMED.batch(0).commit_texts()[SINK_CHECKPOINT] == '{"trips":"0"}'


def test_commits_without_batches_have_none() -> None:
    assert batches_in({"schema": "{}"}, instant="1") == batches_in({SINK_CHECKPOINT: ""}, instant="1") == ()
    of_apache_hudi = batches_in({SINK_CHECKPOINT: json.dumps({"a": "5", "b": "7"})}, instant="1")
    assert of_apache_hudi == (SinkBatch("a", 5, None), SinkBatch("b", 7, None))


@pytest.mark.parametrize("text", ["5", "[1]", '{"a": "x"}', '{"a": null}', "{"])
def test_an_entry_of_another_form_is_an_error(text: str) -> None:
    with pytest.raises(CorruptFile, match="the commit '17'"):
        batches_in({SINK_CHECKPOINT: text}, instant="17")


def test_the_same_batch_of_one_query_is_told_from_every_other() -> None:
    texts = [
        stream.batch(number).commit_texts()
        for stream in (OURS, NAMED, Stream("q2", ""))
        for number in (1, 2)
    ]  # fmt: skip

    assert len({batch_text(one) for one in texts}) == len(texts)
    assert batch_text({SINK_CHECKPOINT: '{"a":"1"}'}) == batch_text({}) == ""


def has(number: int, stream: Stream, own: int | None, namesake: SinkBatch | None) -> bool:
    newest = NewestBatches(None if own is None else stream.batch(own), namesake)
    return newest.has(number, stream, uri="t")


def test_a_table_has_the_batches_up_to_the_streams_newest() -> None:
    assert [has(number, OURS, 3, None) for number in (2, 3, 4)] == [True, True, False]
    assert not has(0, OURS, None, None)
    assert not has(4, NAMED, 3, SinkBatch("trips", 9, "q2"))


def test_a_stream_of_apache_hudi_goes_on() -> None:
    theirs, named = SinkBatch("default_single_writer", 9, None), SinkBatch("trips", 9, None)

    assert not has(10, OURS, None, theirs)
    assert not has(10, OURS, 3, theirs)
    assert has(3, OURS, 3, theirs)
    assert [has(number, NAMED, None, named) for number in (9, 10)] == [True, False]
    assert [has(number, NAMED, 3, named) for number in (3, 9, 10)] == [True, True, False]


@pytest.mark.parametrize("own", [None, 3])
def test_a_batch_that_may_be_stored_already_or_not_is_refused(own: int | None) -> None:
    """Apache Hudi's own rule passes it over: the first batch of a new stream is lost."""
    theirs, named = SinkBatch("default_single_writer", 9, None), SinkBatch("trips", 9, None)

    with pytest.raises(Invalid, match=r"batch 9 of a stream.*if that is this stream.*'default_single_writer'"):
        has(9, OURS, own, theirs)
    for stream, other in ((OURS, theirs), (NAMED, named)):
        with pytest.raises(Invalid, match=r"batch 8 of a stream.*is stored; each stream.*checkpoint\.identifier"):
            has(8, stream, own, other)


def test_only_what_is_newer_than_the_streams_own_counts() -> None:
    own, namesake = OURS.batch(3), SinkBatch("default_single_writer", 9, None)

    assert NewestBatches(own).upon(NewestBatches(None, namesake)) == NewestBatches(own)
    assert NewestBatches(None, namesake).upon(NewestBatches(own)) == NewestBatches(own, namesake)
    assert NewestBatches().upon(NewestBatches(own, namesake)) == NewestBatches(own, namesake)


def test_an_identifier_is_of_one_stream() -> None:
    other = SinkBatch("trips", 2, "q2")

    assert NAMED.may_be_named_as(other)
    for number in (0, 2, 7):
        with pytest.raises(Invalid, match="'trips'"):
            has(number, NAMED, None, other)


def test_streams_without_an_identifier_are_told_apart_by_their_checkpoints() -> None:
    assert not OURS.may_be_named_as(SinkBatch("default_single_writer", 2, "q2"))
    assert not OURS.may_be_named_as(SinkBatch("trips", 2, None))
    assert OURS.may_be_named_as(SinkBatch("default_single_writer", 2, None))
