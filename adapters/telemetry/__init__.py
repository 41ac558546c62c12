"""Traces and metrics, for those who run it. Imported only where the settings switch them on."""
