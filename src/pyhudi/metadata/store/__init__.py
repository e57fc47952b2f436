"""The metadata table as a store of records by key: its slices, logs and file groups.

What the records mean for an index is in `kinds/`."""
