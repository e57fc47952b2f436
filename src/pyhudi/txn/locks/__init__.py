"""Who holds a table, who waits for it, and who is alive.

What a holder does is no matter of this folder."""
