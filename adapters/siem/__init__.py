"""A SIEM, which takes the audit log over HTTPS."""
