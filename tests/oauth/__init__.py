"""OAuth over real sockets: services, proofs of identity, pages."""
