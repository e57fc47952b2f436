"""Predicates of other libraries (Arrow, Polars) as trees of nodes, as far as they mean the same. No other library is
imported here. What has no equal is left out: the library that asked filters the rows itself."""
