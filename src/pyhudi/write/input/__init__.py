"""What a write needs of its input: columns, keys, and where stored rows of these keys lie.

Nothing here writes a file."""
