"""Entries of Spark's catalog, or of the Hive metastore behind it: made for a table, and kept true as it changes.
What a statement means is not here."""
