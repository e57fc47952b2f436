"""Partitions that are old enough to go (partition TTL): which ones, and why others stay.

The deletion itself is the ordinary write `delete_partitions`; it is not here."""
