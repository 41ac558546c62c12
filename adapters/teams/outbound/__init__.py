"""What goes out to Teams: posts, answers that grow while they are written, and what one person alone is told."""
