"""Writing the rows of several file groups anew into other file groups: larger ones, or in another order.

The work on one group of file slices is in `write/handles/`."""
