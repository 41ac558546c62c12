"""A conversation, whatever the platform: deliveries in, turns run, approvals kept, posts out."""
