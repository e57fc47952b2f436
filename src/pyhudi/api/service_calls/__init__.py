"""The services of a table as calls, and the process that runs them by itself. What a service does is not here."""
