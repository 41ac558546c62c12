"""What comes in from Slack: verified, parsed, and given to the desk. No decisions are made here."""
