"""Services that run by themselves, round after round: what is due on a table, when it is tried again, how it went.

What carries a service out is handed in. Writes and their own services do not live here."""
