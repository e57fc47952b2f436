"""A write by another count of buckets, or other hash fields, than earlier rows were placed by loses those rows."""

from dataclasses import replace

import pytest

from pyhudi.errors import Invalid
from pyhudi.table.facts.bucket_facts import BucketFacts, bucket_facts, facts_of_table, new_bucket_properties
from pyhudi.table.facts.config import TableConfig, table_config

KEY = ("id", "name")
FACTS = BucketFacts("SIMPLE", 8, ("id",), is_stored=True, has_stored_fields=True)
STORED = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "8",
    "hoodie.bucket.index.hash.field": "id",
}


def config(**stored: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2",
        "hoodie.table.recordkey.fields": ",".join(KEY),
    }
    return table_config(properties | stored, path="p")


def test_what_nobody_said_is_the_whole_key_and_no_count() -> None:
    assert bucket_facts({}, record_key=KEY, table_type="COPY_ON_WRITE") == BucketFacts("SIMPLE", None, KEY)


def test_hash_fields_stand_in_the_order_of_the_key() -> None:
    facts = bucket_facts({"hoodie.bucket.index.hash.field": "name, id"}, record_key=KEY, table_type="COPY_ON_WRITE")

    assert facts.hash_fields == KEY


@pytest.mark.parametrize(
    "options, message",
    [
        ({"hoodie.bucket.index.num.buckets": "0"}, "expected a whole number of at least 1"),
        ({"hoodie.bucket.index.num.buckets": "100000000"}, "expected at most 99,999,999 buckets"),
        ({"hoodie.bucket.index.hash.field": "id,x"}, r"expected columns of the record key \(id, name\), found 'x'"),
        ({"hoodie.index.bucket.engine": "OTHER"}, "expected SIMPLE or CONSISTENT_HASHING"),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, "expected a table of type MERGE_ON_READ"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        bucket_facts(options, record_key=KEY, table_type="COPY_ON_WRITE")


def test_a_ring_has_fewer_buckets_at_most() -> None:
    options = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.num.buckets": "46342"}

    with pytest.raises(Invalid, match="expected at most 46,341 buckets"):
        bucket_facts(options, record_key=KEY, table_type="MERGE_ON_READ")


def test_a_table_without_key_columns_has_no_buckets() -> None:
    with pytest.raises(Invalid, match="expected a table with key columns"):
        bucket_facts({}, record_key=(), table_type="COPY_ON_WRITE")


def test_a_new_table_stores_what_places_its_rows() -> None:
    assert new_bucket_properties({}, record_key=KEY, table_type="COPY_ON_WRITE") == {}
    assert new_bucket_properties({"hoodie.index.type": "bucket"}, record_key=KEY, table_type="COPY_ON_WRITE") == {
        **STORED,
        "hoodie.bucket.index.num.buckets": "256",
        "hoodie.bucket.index.hash.field": "id,name",
    }
    assert new_bucket_properties(STORED, record_key=KEY, table_type="COPY_ON_WRITE") == STORED


@pytest.mark.parametrize(
    "changes, is_allowed",
    [
        ({}, True),
        ({"hoodie.bucket.index.num.buckets": "08"}, True),
        ({"hoodie.index.type": "bucket"}, True),
        ({"hoodie.bucket.index.num.buckets": "16"}, False),
        ({"hoodie.bucket.index.hash.field": "id,name"}, False),
        ({"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}, False),
        ({"hoodie.index.type": "SIMPLE"}, False),
    ],
)
def test_a_write_may_repeat_what_the_table_stores_and_nothing_else(changes: dict[str, str], is_allowed: bool) -> None:
    table = config(**STORED)
    if is_allowed:
        assert facts_of_table(table, STORED | changes) == BucketFacts(
            "SIMPLE", 8, ("id",), is_stored=True, has_stored_fields=True
        )
    else:
        with pytest.raises(Invalid, match=rf"option '{next(iter(changes))}'=.* table 't' stores '"):
            facts_of_table(table, STORED | changes)


def test_a_table_that_stores_nothing_is_taken_at_the_word_of_the_write() -> None:
    assert facts_of_table(config(), {}) is None
    assert facts_of_table(config(), STORED) == BucketFacts("SIMPLE", 8, ("id",), is_stored=False)


def test_another_index_that_is_stored_stays_no_bucket_index() -> None:
    with pytest.raises(Invalid, match="stores 'BLOOM'"):
        facts_of_table(config(**{"hoodie.index.type": "BLOOM"}), STORED)
    assert facts_of_table(config(**{"hoodie.index.type": "BLOOM"}), {"hoodie.index.type": "SIMPLE"}) is None


def test_facts_are_compared_whatever_the_type_of_the_table() -> None:
    table = replace(config(**STORED), table_type="COPY_ON_WRITE")

    assert facts_of_table(table, STORED) == FACTS
