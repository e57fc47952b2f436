"""Formats: bytes and texts <-> values, such as keys, schemas, commits, and the records of the metadata table.

Nothing here reads or writes a file, asks a clock or draws a random number, and nothing here knows Spark.
"""
