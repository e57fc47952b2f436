"""Table services: each plans purely, then carries its plan out as an action.

A folder for each; `after_commit.py` says what follows a write."""
