"""Forms, pure: a waiting call as inputs to edit it by, and what people typed as values of the right types."""
