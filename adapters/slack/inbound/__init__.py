"""What comes in from Slack: verified, parsed, and given to the services. No decisions are made here."""
