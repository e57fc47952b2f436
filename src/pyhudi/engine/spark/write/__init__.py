"""Writes from Spark DataFrames: keys, tags, one shuffle, tasks.

The plan comes from `write/place/`."""
