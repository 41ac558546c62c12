"""The outside: chat platforms and tool servers, a folder each; they know `bot` and `graph`, and not each other."""
