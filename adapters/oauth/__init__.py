"""OAuth over HTTP: people's accounts at outside services, and proof of who opened a sign-in link."""
