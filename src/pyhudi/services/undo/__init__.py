"""Savepoints, restores and rollbacks as users ask for them: what is refused first, and what follows.

The steps themselves are in `txn/undo/`."""
