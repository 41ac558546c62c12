"""How well a language model works in the product: conversations with what must come of them, and texts that try to make
the agent act. `python -m evals` runs them (docs/evals.md)."""
