"""The rows of file slices: base files, blocks of logs, and both merged.

Which slices a query reads is decided in `prune/` and `read/`."""
