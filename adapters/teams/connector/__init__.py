"""Speaking with Microsoft: who may send to us, as whom we speak, the Bot Connector, and people."""
