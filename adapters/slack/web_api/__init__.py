"""Slack's Web API, as whom we speak to it, and what it says of people and threads."""
