"""The functions that a predicate may call: the arguments that Spark takes, and the values that it computes."""
