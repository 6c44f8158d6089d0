"""Declare a tool: a method whose signature and docstring a client reads."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Final, TypeAlias, get_type_hints

from pydantic import Field, create_model
from pydantic_core import from_json

from fusion_bench.config.models import StrictModel
from fusion_bench.config.options import read_attributes
from fusion_bench.report.page import Page

#: A record as ``--json`` prints it, and the page whose summary is the text; None = the record.
ToolAnswer: TypeAlias = tuple[object, Page | None]


@dataclass(frozen=True)
class Tool:
    """A method of :class:`Tools` as clients see it.

    Attributes:
        function: The method.
        schema: Name of the record's published schema; None = any object.
        is_light: Whether it reads no list: any number of these may run at once.
        writes: Whether it may write a file.
        needs_campaign: Whether it is there only where a campaign may be asked.
    """

    function: Callable[..., ToolAnswer]
    schema: str | None
    is_light: bool
    writes: bool
    needs_campaign: bool

    @property
    def name(self) -> str:
        """The name that a client calls."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """When to use it."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n\nArgs:")[0]

    @cached_property
    def arguments(self) -> type[StrictModel]:
        """Its arguments, each described."""
        hints = get_type_hints(self.function, include_extras=True)
        texts = read_attributes(self.function.__doc__ or "", "Args")
        _, *parameters = inspect.signature(self.function).parameters.values()
        fields: dict[str, Any] = {}
        for each in parameters:
            default = ... if each.default is inspect.Parameter.empty else each.default
            fields[each.name] = (hints[each.name], Field(default, description=texts[each.name]))
        return create_model(self.name, __base__=StrictModel, **fields)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of its record."""
        if self.schema is None:
            return {"type": "object"}
        file = resources.files("fusion_bench") / "schemas" / f"{self.schema}.json"
        schema: dict[str, Any] = from_json(file.read_bytes())
        return schema


#: By name, in the order in which an agent needs them.
TOOLS: Final[dict[str, Tool]] = {}


def tool(
    schema: str | None = None,
    *,
    is_light: bool = False,
    writes: bool = False,
    needs_campaign: bool = False,
) -> Callable[[Callable[..., ToolAnswer]], Callable[..., ToolAnswer]]:
    """Add a method to :data:`TOOLS`; arguments as :class:`Tool` has them."""

    def register(function: Callable[..., ToolAnswer]) -> Callable[..., ToolAnswer]:
        TOOLS[function.__name__] = Tool(function, schema, is_light, writes, needs_campaign)
        return function

    return register
