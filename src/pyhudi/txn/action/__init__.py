"""The one way of an action from requested to completed. This folder knows neither its callers nor the action's work."""
