"""The metadata table: read, asked, and compared with the data.

Nothing here commits. Its records are written in `write/metadata/`."""
