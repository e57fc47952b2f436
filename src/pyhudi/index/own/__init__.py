"""Indexes of users' own: the protocol, the names under which they are registered, and how they stay true to a table.

What an index stores, and where, is its own matter."""
