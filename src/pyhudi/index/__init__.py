"""How the file groups of record keys are found before a write.

Indexes of the metadata table for queries are in `metadata/`."""
