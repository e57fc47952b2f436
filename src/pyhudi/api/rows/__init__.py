"""Changes of rows by what they hold: the calls that a table has, and what they do on either engine."""
