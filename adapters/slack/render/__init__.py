"""What Slack shows: pure functions from our words to blocks, modals and the App Home."""
