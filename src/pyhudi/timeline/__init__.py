"""The timeline: its layouts, the active part, the archived part, and the times of new instants.

What an action does to the table does not belong here; see `txn/` and `services/`.
"""
