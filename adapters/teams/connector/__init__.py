"""Speaking with Microsoft: who may send to us, as whom we speak, the Bot Connector, and people.

The SDK is imported by `wire` only, which takes most of a second: `client` needs it, nothing else in this folder does.
"""
