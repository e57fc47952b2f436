"""The metadata table's own upkeep: made where missing, compacted, cleaned, restored.

Its share in each commit is in `write/metadata/`."""
