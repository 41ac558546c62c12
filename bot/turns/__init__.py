"""Turns: one delivery after the other becomes a run of the graph, and what it says and asks."""
