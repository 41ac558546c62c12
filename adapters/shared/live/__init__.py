"""What open pages and streams show: entries of conversations as JSON, and events for whoever watches one."""
