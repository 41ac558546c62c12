"""Against a Slack that nobody here wrote: `local-slack` (npm), in Events mode and in Socket Mode."""
