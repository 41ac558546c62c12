"""Forms, pure: a waiting call as inputs to edit it by, and what people typed as values of the right types.

`edit_fields` and `read_form` are the two halves of an edit: from the tool's input schema and the arguments to typed
inputs, and back to new arguments that the schema accepts. `read_answers` reads a clarification's form, `read_elicited`
that of a tool's question.
"""

from __future__ import annotations

from bot.forms.editing import edit_fields, read_answers, read_elicited, read_form
from bot.forms.values import LONGEST_TEXT, FormErrors

__all__ = ["LONGEST_TEXT", "FormErrors", "edit_fields", "read_answers", "read_elicited", "read_form"]
