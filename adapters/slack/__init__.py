"""The Slack platform, on slack-bolt, within the one aiohttp application. Imported only when Slack is configured."""
