"""Turns: the engine hands over one delivery after the other; each becomes a run of the graph, and what it says."""
