"""Moving old instants from the active timeline into the history.

No data file is touched here."""
