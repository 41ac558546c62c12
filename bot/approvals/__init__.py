"""The life of an approval: asked for, shown, voted on, handed to colleagues, settled; and who may do what."""
