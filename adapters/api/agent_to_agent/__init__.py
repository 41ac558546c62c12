"""Agent to agent (A2A): turns as tasks, conversations as contexts, approvals as what a task needs."""
