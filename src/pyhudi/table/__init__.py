"""A table as one call sees it: its facts, its file slices with their logs merged, and plans of what a query reads.

Code here reads the storage it is given. It writes the properties file and a new table's folders, and nothing else.
"""
