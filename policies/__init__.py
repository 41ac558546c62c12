"""Who may do what: rules in, a verdict out. Pure; the lowest layer."""
