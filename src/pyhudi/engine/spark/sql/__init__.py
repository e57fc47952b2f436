"""What SQL needs of Spark's own classes: names in its catalog, table functions, casts of stored values, hooks.

What a statement does to a table does not belong here.
"""
