"""Deleting files that no reader needs any more.

Old instants leave the timeline in `archive/`."""
