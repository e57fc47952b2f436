"""Bytes to values and back, as Apache Hudi writes them.

No module here does I/O, asks a clock or draws a random number."""
