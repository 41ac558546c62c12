"""What every chat platform needs, and what serves them all: the port, its limits, the health check."""
