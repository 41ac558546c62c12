"""Our words → Teams' activities, Adaptive Cards and dialogs, and what people filled in → values. Pure."""
