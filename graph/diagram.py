"""The picture of the workflow, drawn from the compiled graph. `python -m graph.diagram` writes `docs/graph.md`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graph.workflow import build_tool_call, build_workflow

PAGE = Path(__file__).parents[1] / "docs" / "graph.md"

_HEAD = """\
# The graph

Drawn from the compiled graph by `python -m graph.diagram`; a test keeps it current. Solid arrows are always taken,
dotted ones are a choice. `human_clarification`, `human_confirmation`, `oauth_needed`, `elicitation_needed` and
`outcome_unknown` stop until someone answers.

## A conversation
"""
_BRANCH = """
## One tool call
Every call of the model's message runs in a branch of its own (`tool_call` above), side by side with its siblings.
People are asked about them in the order of the calls. A call of another agent takes the same steps without a
conversation around it (`graph/single_calls.py`).
"""


class _Anything:
    """Stands for the ports: drawing calls none of them."""

    def __getattr__(self, name: str) -> Any:
        return _Anything()


def page() -> str:
    """The page as Markdown with two Mermaid diagrams."""
    ports: Any = _Anything()
    conversation = build_workflow(ports, None).get_graph().draw_mermaid(with_styles=False)
    branch = build_tool_call(ports).get_graph().draw_mermaid(with_styles=False)
    first, second = (f"```mermaid\n{each.strip()}\n```\n" for each in (conversation, branch))
    return f"{_HEAD}{first}{_BRANCH}{second}"


if __name__ == "__main__":
    PAGE.write_text(page())
