"""Scans as Spark DataFrames.

The plan comes from `table/read/`."""
