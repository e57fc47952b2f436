"""What actions that ran at the same time do to each other: pure functions from facts to a verdict. Nothing is read."""
