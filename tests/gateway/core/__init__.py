"""Calls of other agents on real records, without a transport."""
