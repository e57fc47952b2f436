"""The records of the metadata table: schemas, keys, and columns of Arrow for each kind of record.

Reading and writing its files belongs to `metadata/` and `write/metadata/`."""
