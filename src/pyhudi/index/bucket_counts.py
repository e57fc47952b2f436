"""The rules that say how many buckets each partition of a table has: which ones are in force, and what they say."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.keys.bucket_counts import CONFIGS, BucketCounts, instant_of_file
from pyhudi.format.keys.hashing_metadata import INITIAL_INSTANT
from pyhudi.predicate.patterns import parse_java_regex
from pyhudi.storage.protocol import Storage
from pyhudi.timeline.active import Timeline


def find_counts(storage: Storage, timeline: Timeline) -> BucketCounts | None:
    """The rules in force; None for a table that states none.

    Those of an action that did not complete do not count. Requests: a list, and a get if there are rules.
    """
    found = {instant: file.path for file in storage.list(CONFIGS) if (instant := _instant(file.path)) is not None}
    counted = [instant for instant in sorted(found) if instant == INITIAL_INSTANT or timeline.is_committed(instant)]
    if not counted:
        return None
    path = found[counted[-1]]
    return BucketCounts.decode(storage.get(path), path=path)


def count_by_partition(counts: BucketCounts, partitions: Sequence[str]) -> dict[str, int]:
    """The buckets of each partition. The first rule counts whose pattern is found in the path.

    Seen: 1.2.0 looks for the pattern anywhere in the path (`RegexRuleEngine`).
    """
    left, found = pa.array(partitions, pa.string()), dict.fromkeys(partitions, counts.default)
    for pattern, count in counts.rules:
        matches = pc.match_substring_regex(left, parse_java_regex(pattern))
        found |= dict.fromkeys(left.filter(matches).to_pylist(), count)
        left = left.filter(pc.invert(matches))
    return found


def _instant(path: str) -> str | None:
    return instant_of_file(path.rpartition("/")[2])
