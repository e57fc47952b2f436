"""Rows that a write makes of stored rows: those that a predicate chooses, changed or deleted.

How rows are looked up, placed and stored is the business of every write, and does not belong here.
"""
