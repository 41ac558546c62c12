"""Deliveries: accepted durably, handled once, one at a time per thread."""
