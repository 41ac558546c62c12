"""The agent: a LangGraph workflow that knows nothing of chat platforms, databases or HTTP."""
