"""The built-in demo model: rules instead of a language model, and honest about it. Only the composition imports it."""
