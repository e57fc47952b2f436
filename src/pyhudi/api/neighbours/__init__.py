"""A scan as Polars and DuckDB read it: their filters and columns reach the plan. The libraries are imported on use."""
