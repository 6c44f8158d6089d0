"""The options of a command: a class whose fields are its options, each described once.

A field's name, type and default are the option's, and its help is the field's line under
``Attributes:`` in the docstring of the class. :class:`Option` adds what a command line needs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from fusion_bench.config.models import MOST_RANK

R = TypeVar("R")
#: What an obstacle is about: ids that do not meet, or a list that a check finds false.
ObstacleKind: TypeAlias = Literal["unmatched", "suspect"]

#: A line of ``Attributes:``: the name of a field and the beginning of its help.
ATTRIBUTE = re.compile(r" {4}(\w+): (.*)")


class Option:
    """How an option is written, beside what its field says.

    Args:
        names: Its name if that is not the field's, such as ``--set``.
        settings: Of the command line's library: ``metavar``, ``min``, ``max``, …
    """

    is_argument = False

    def __init__(self, *names: str, **settings: Any) -> None:  # noqa: ANN401 - typer's own
        self.names = names
        self.settings = settings


class Argument(Option):
    """A positional argument, described by its metavar."""

    is_argument = True

    def __init__(self, metavar: str, **settings: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(metavar=metavar, **settings)


File: TypeAlias = Annotated[Path, Option(metavar="FILE")]
Folder: TypeAlias = Annotated[Path, Option(metavar="DIR")]
Name: TypeAlias = Annotated[str, Option(metavar="NAME")]
Names: TypeAlias = Sequence[Name]
Changes: TypeAlias = Annotated[Sequence[str], Option("--set", metavar="KEY=VALUE")]
Depth: TypeAlias = Annotated[int, Option(min=1, max=MOST_RANK)]
Count: TypeAlias = Annotated[int, Option(min=1)]
Seed: TypeAlias = Annotated[int, Option(min=0)]
Amount: TypeAlias = Annotated[float, Option(min=0)]
Number: TypeAlias = Annotated[int, Option(min=1, metavar="N")]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Options of a command; a subclass is a frozen record with keyword arguments.

    A package that does the work has such a class, which the command inherits.
    """

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def given(self, *names: str) -> dict[str, Any]:
        """The values of those options that differ from their defaults, by how they are written."""
        known = {each.name: each for each in list_options(type(self))}
        values = {known[name].label: (getattr(self, name), known[name].default) for name in names}
        return {label: value for label, (value, default) in values.items() if value != default}

    def words(self, *names: str) -> Iterator[object]:
        """The words with which a command line gives these options again."""
        for label, value in self.given(*names).items():
            for each in value if isinstance(value, tuple) else (value,):
                yield from (label, each)

    def call(self, function: Callable[..., R], *values: object, **others: object) -> R:
        """Call a function or a class; options are its other parameters of the same names."""
        names = list(inspect.signature(function).parameters)[len(values) :]
        own = {each.name for each in fields(self)} - set(others)  # type: ignore[arg-type] # subclasses are
        named = {name: getattr(self, name) for name in names if name in own}
        return function(*values, **named, **others)


class CheckOptions(Options):
    """What stops no answer.

    Attributes:
        allow_unmatched: Go on although document ids do not meet.
        allow_suspect: Go on although a check finds a list false.
    """

    allow_unmatched: bool = False
    allow_suspect: bool = False

    @property
    def allowed(self) -> tuple[ObstacleKind, ...]:
        """The kinds of obstacles that stop nothing."""
        return allow_obstacles(unmatched=self.allow_unmatched, suspect=self.allow_suspect)


def allow_obstacles(*, unmatched: bool, suspect: bool) -> tuple[ObstacleKind, ...]:
    """The kinds of obstacles that stop nothing, as two switches say."""
    kinds: dict[ObstacleKind, bool] = {"unmatched": unmatched, "suspect": suspect}
    return tuple(kind for kind, is_allowed in kinds.items() if is_allowed)


class PageFileOptions(Options):
    """Which files are written of a page.

    Attributes:
        latex: Also write each table of the page for LaTeX, with booktabs.
        csv: Also write the records behind the page as CSV.
        html: Write the page for a browser.
    """

    latex: bool = False
    csv: Annotated[Literal["tables", "per-query"], Option(metavar="[per-query]")] | None = None
    html: bool = True


class PaperOptions(PageFileOptions):
    """Which files are written of an evaluation for a paper.

    Attributes:
        latex: Also write one table for LaTeX, with booktabs: systems, measures, and marks of
            significance.
        columns: Measure in the columns of that table, or difference, interval or p of the first
            one; repeatable. Default: all measures.
        letters: Put letters to its means: systems that share one are not shown to differ.
        csv: Also write systems and differences as CSV; per-query: each query, too.
    """

    latex: bool = False
    columns: Names = ()
    letters: bool = False


class PictureOptions(PageFileOptions):
    """Which files are written of a page with plots.

    Attributes:
        plots: Also write the plots as files; the page has them.
        plot_format: Format of plots.
    """

    plots: Annotated[bool, Option("--plots/--no-plots")] = False
    plot_format: Literal["png", "svg"] = "png"


class OptionField(NamedTuple):
    """An option as its class describes it.

    Attributes:
        name: Of the field.
        hint: Its type, with what :class:`Option` says.
        default: Its default; MISSING of :mod:`dataclasses` = it must be given.
        help: What it means.
    """

    name: str
    hint: Any
    default: Any
    help: str

    @property
    def marks(self) -> list[Option]:
        """What is said of how it is written, the outermost first."""
        marks, hint = [], self.hint
        while args := get_args(hint):
            marks += [mark for mark in args if isinstance(mark, Option)]
            hint = args[0]
        return marks

    @property
    def label(self) -> str:
        """How a message names it: ``--max-cost``, or the metavar of an argument."""
        names = [name for mark in self.marks for name in mark.names]
        for mark in self.marks:
            if mark.is_argument:
                return str(mark.settings["metavar"])
        return names[0].partition("/")[0] if names else f"--{self.name.replace('_', '-')}"


def list_options(kind: type[Options]) -> Iterator[OptionField]:
    """The options of a class in the order of its own body, then those that it inherits."""
    hints = get_type_hints(kind, include_extras=True)
    names = dict.fromkeys(
        name for each in kind.__mro__ for name in each.__dict__.get("__annotations__", ())
    )
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        texts |= read_attributes(base.__doc__ or "")
    for name in names:
        default = getattr(kind, name, MISSING)
        yield OptionField(name, hints[name], default, texts.get(name, ""))


def read_attributes(docstring: str, section: str = "Attributes") -> dict[str, str]:
    """Field → text of a section, in one line."""
    _, _, entries = inspect.cleandoc(docstring).partition(f"{section}:\n")
    texts: dict[str, str] = {}
    for line in entries.splitlines():
        if match := ATTRIBUTE.fullmatch(line):
            name = match[1]
            texts[name] = match[2]
        elif line.strip():
            texts[name] += f" {line.strip()}"
        else:
            break
    return texts
