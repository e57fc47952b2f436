"""The index of a bootstrapped table: which source file belongs to a base file. Bytes to values, and back; no I/O."""
