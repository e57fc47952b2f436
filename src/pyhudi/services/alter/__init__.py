"""Changing a table's columns: what must stay as it is, and the commit without rows that carries the change.

What a change makes of a schema is in `format/schema/alterations.py`. Nothing here reads or writes rows.
"""
