"""Reading files that people hand over, each in a process of its own."""
