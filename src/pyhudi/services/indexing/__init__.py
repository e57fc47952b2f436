"""Building and dropping indexes of the metadata table, beside writers.

What an index holds is said in `metadata/`."""
