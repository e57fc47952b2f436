"""What differs between the metadata table and the data, as values.

Each kind of index compares itself. Nothing here repairs."""
