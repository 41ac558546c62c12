"""Coming in: what is let in, and what each kind of activity does."""
