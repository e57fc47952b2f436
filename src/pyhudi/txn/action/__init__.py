"""The one way of an action from requested to completed. Who begins one, and what it does between, is not known here."""
