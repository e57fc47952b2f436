"""Undoing actions, and clearing up after dead writers. Which actions a user may take back is decided in `services/`."""
