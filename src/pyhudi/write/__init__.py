"""Writes: the input checked, its rows placed, file groups written, all as one operation.

The engines carry out the work; `txn/` commits it."""
