"""Undoing actions, and clearing up after writers that died. Which action a user may take back is not decided here."""
