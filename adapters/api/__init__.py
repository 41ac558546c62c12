"""The HTTP API for programs: threads, messages, approvals, and what clients of other systems expect."""
