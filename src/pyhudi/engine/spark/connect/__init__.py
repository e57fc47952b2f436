"""What Spark Connect needs, where a session has no JVM: names by SQL alone, casts by DataFrames, a source for streams.

What a statement does to a table does not belong here.
"""
