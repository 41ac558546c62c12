"""People's accounts at outside services: from the link that only their owner sees to a token for one call."""
