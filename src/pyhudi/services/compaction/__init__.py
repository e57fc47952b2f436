"""Turning a base file and its logs into the next base file, and many log blocks into one.

The work on one file slice is in `write/handles/`."""
