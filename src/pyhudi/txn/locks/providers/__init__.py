"""Apache Hudi's lock providers, one a module. Each keeps out Apache Hudi's writers that use the same provider.

A module here is imported only when its provider is asked for. What guards a table without a setting is not here."""
