"""Teams on loopback: the Bot Connector, the token issuer and the keys it signs with."""
