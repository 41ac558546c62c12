"""The gateway of other agents, driven as they drive it: real clients, real tool servers."""
