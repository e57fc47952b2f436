"""What changed in a range of commits.

Snapshots are in `view/`."""
