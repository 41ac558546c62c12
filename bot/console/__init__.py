"""What operators see and do: all that waits, every turn, the audit log, the switch that stops everything."""
