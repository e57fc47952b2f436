"""Actions on the timeline: who may write, how an action begins and ends, and how one is undone.

What an action writes is decided in `write/` and `services/`."""
