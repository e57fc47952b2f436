"""Storage: the protocol for the bytes of a table, and the stores: local disk, memory, object stores, fsspec.

Nothing here knows what a file holds; formats are in `format/`.
"""
