"""The table at a moment: its timeline, partitions, file groups and file slices.

Rows are read in `slices/`, not here."""
