"""Coming in: the one door, and what each kind of activity does."""
