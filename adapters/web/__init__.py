"""The web platform: a chat page at `/`, served by the same aiohttp application as everything else."""
