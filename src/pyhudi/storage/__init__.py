"""The protocol through which every byte of a table passes, and the stores that fulfil it.

Nothing here knows what a table is."""
