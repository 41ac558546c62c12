"""The HTTP API, and the contracts of existing clients."""
