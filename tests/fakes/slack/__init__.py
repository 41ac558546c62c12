"""A Slack that runs on loopback: its Web API, its Socket Mode, its memory and its limits."""
