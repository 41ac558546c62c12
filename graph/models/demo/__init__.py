"""The built-in demo model: rules instead of a language model, and honest about it."""

from graph.models.demo.model import DemoChatModel
from graph.models.demo.routing import pick_categories

__all__ = ["DemoChatModel", "pick_categories"]
