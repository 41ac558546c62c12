"""What goes out to Slack: posts, drafts that grow while they are written, and what one person alone is told."""
