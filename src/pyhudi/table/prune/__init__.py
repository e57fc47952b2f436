"""Which partitions, file slices and row groups cannot hold a row that a query keeps.

In doubt they are read. Statistics come through protocols that `metadata/` fulfils."""
