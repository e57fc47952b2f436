"""What `hoodie.properties` says of a table, and how a new table is made.

Facts are read once a call. What follows from the timeline is in `view/`."""
