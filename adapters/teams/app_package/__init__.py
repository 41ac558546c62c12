"""The Teams app: what Teams has to be told about the bot, with its icons, as the zip that is uploaded to Teams.

`make teams-package` (or `python -m adapters.teams.app_package`) writes `dist/countersign-teams.zip`; docs/teams.md says
what to do with it. No part of the running bot: nothing else imports this.
"""
