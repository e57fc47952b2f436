"""`CALL name(…)`: Apache Hudi's procedures as data, each with its arguments and the columns of its answer.

What a procedure shows is read in `inspect/`; what it does is a call of the table.
"""
