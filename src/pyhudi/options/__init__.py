"""What each `hoodie.*` option means here, and how the sources that set it are combined.

Every known name has one entry. What a setting does is decided by the code that reads it, not here."""
