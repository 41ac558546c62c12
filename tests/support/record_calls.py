"""Every function of `bot.records` that executes statements, with arguments to call it with."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import bot.records
from bot.records.database import Transaction
from graph.interrupts import ApprovalAsked, ClarificationAsked, FormField, PlanAsked, PlannedTask, TaskEnding
from graph.usage import ModelUse, Usage
from policies.model import Ask

Given = Mapping[str, Any]
"""By the name of a parameter, or a field."""

NOT_CALLED = {"select_pending", "insert_new", "upsert"}
"""They execute what others give them."""
WITHOUT_SQLITE = {"beginnings", "replicas"}
"""Modules of what only several processes have."""
_LISTS = {Sequence, Collection, Iterable, list, tuple}


class RecordCall(NamedTuple):
    """A function and what to give it."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    async def make(self, tx: Transaction) -> object:
        """Call it."""
        return await self.function(tx, **self.arguments)


def record_calls(given: Given) -> Iterator[RecordCall]:
    """One call of each function; and one more where an argument that may be missing is."""
    for module_info in pkgutil.iter_modules(bot.records.__path__):
        if module_info.name in WITHOUT_SQLITE:
            continue
        module = importlib.import_module(f"bot.records.{module_info.name}")
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction):
            if function.__module__ != module.__name__ or name in NOT_CALLED or name.startswith("_"):
                continue
            hints = typing.get_type_hints(function)
            parameters = list(inspect.signature(function).parameters.values())
            if not parameters or hints[parameters[0].name] is not Transaction:
                continue
            named = [p for p in parameters[1:] if p.kind is not p.VAR_KEYWORD]
            arguments = {p.name: sample(hints[p.name], p.name, given) for p in named}
            yield RecordCall(f"{module_info.name}.{name}", function, arguments | _more(name))
            if optional := [p.name for p in named if p.default is None]:
                missing = {**arguments, **dict.fromkeys(optional)}
                yield RecordCall(f"{module_info.name}.{name} without {optional[0]}", function, missing)


def sample(wanted: Any, name: str, given: Given) -> Any:
    """A value of a type, for a parameter or field of this name."""
    if wanted in (Usage, ModelUse):
        use = ModelUse(calls=1, input_tokens=1, cached_tokens=1, output_tokens=1, seconds=1.0)
        return use if wanted is ModelUse else {"model": use}
    if name in given and not (hasattr(wanted, "_fields") or dataclasses.is_dataclass(wanted)):
        return given[name]
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return sample(next(each for each in inner if each is not type(None)), name, given)
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple and inner[-1] is not ...:
        return tuple(sample(each, name, given) for each in inner)
    if origin in _LISTS:
        return (sample(inner[0], name.removesuffix("s"), given),)
    if origin is Mapping or wanted is dict or origin is dict:
        return {}
    simple: dict[Any, Any] = {str: name, int: 1, float: 1.0, Decimal: Decimal(1), bool: False, Any: "x", object: "x"}
    if wanted in simple:
        return simple[wanted]
    return _made(wanted, given)


def _made(wanted: Any, given: Given) -> Any:
    if wanted is ApprovalAsked:
        ask = Ask(rule="a rule")
        call = sample(str, "call_id", given)
        return ApprovalAsked(
            call_id=call, round=9, server="s", tool="t", title="", arguments={}, digest="d", risk=(), ask=ask,
            requesters=(sample(str, "person_id", given),), quote="",
        )  # fmt: skip
    if wanted is ClarificationAsked:
        field = FormField(name="what", label="What", kind="text")
        return ClarificationAsked(call_id="new", question="?", context="", fields=(field,), requester="p")
    if wanted is PlanAsked:
        tasks = tuple(PlannedTask(id=each, agent="a", instruction="do it") for each in ("one", "two"))
        return PlanAsked(call_id="new", tasks=tasks, requester="p", turn={})
    if wanted is TaskEnding:
        return TaskEnding(id="one", agent="a", state="done", text="")
    if dataclasses.is_dataclass(wanted):
        hints = typing.get_type_hints(wanted)
        needed = [f.name for f in dataclasses.fields(wanted) if _has_no_default(f) or f.name in given]
        return wanted(**{name: sample(hints[name], name, given) for name in needed})
    if hasattr(wanted, "_fields"):
        return wanted(**{name: sample(hint, name, given) for name, hint in typing.get_type_hints(wanted).items()})
    raise TypeError(f"tests.support.record_calls: no sample of {wanted!r}")


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _more(name: str) -> Mapping[str, Any]:
    """What goes into `**values`."""
    return {"step": "consent"} if name == "change" else {}
