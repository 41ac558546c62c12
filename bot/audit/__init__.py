"""The audit log: every tool call, once, in a chain of hashes that shows where it was touched."""
