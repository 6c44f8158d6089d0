"""What answers of engines, rerankers and libraries look like in JSON: one row of data each.

The files ``*.toml`` beside this module hold the rows. A row says where a list of hits is and what
its keys hold; :mod:`fusion_bench.io.layouts.lists` finds the lists that a row describes. The rows
are in the order in which they are tried: special ones first, the general ones last.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, Literal

from fusion_bench.data.document_rows import COLUMN_NAMES, TEXT_NAMES
from fusion_bench.errors import UnknownNameError
from fusion_bench.io.raw_files import Kind

#: The files of rows, in the order in which their rows are tried.
FAMILIES: Final = ("engines", "rerankers", "judgments", "libraries", "traces", "general")
#: The family of the layouts of no one product, whose keys may be any.
GENERAL: Final = FAMILIES[-1]
#: Names of a distance in a hit: the smallest is the best.
DISTANCE_NAMES: Final = (
    *("distance", "_distance", "distances", "dist"),
    *("vector_distance", "cosine_distance", "l2_distance"),
)
#: What a key of a hit may hold → its usual names; inside a list an ``id`` can only be the
#: document's.
HIT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **COLUMN_NAMES,
    "document": (
        *(name for name in COLUMN_NAMES["document"] if name not in TEXT_NAMES),
        *("id", "_id", "document", "doc"),
    ),
    "score": (*COLUMN_NAMES["score"], "_score", *DISTANCE_NAMES),
}


@dataclass(frozen=True)
class Layout:
    """One row of the table.

    A path is keys joined by dots. In ``lists`` the step ``[]`` is each item of a list (the answers
    of a batch, in the order of its requests), ``{}`` is each value of an object (its key is the
    query), ``*`` is the only value of an object in which the rest of the path leads to a list,
    ``?`` its only list of objects, ``@`` the attributes of a span as nested objects if they have
    the rest of the path, and ``a|b`` the first of two keys that is there. An empty path is the
    whole answer.

    Attributes:
        name: What ``fusion-bench formats`` calls it.
        title: Who writes it, and what it is.
        family: The file that has the row.
        lists: Paths of the lists of hits; the first that leads to one counts.
        source: Address of the page that describes it.
        form: What is at the path: a list of ``hits`` (objects, pairs of document and score, or
            ids), ``flat`` (``{document: score}``, pairs or ids), ``keyed`` (``{document: {…}}``,
            where ``{}`` is the path of the document), ``graded`` (``{grade: [ids]}``), ``ids`` (an
            id, ids, or lists of ids), ``rows`` (objects that name their queries themselves, with
            what is beside the list), ``columns`` (an object of parallel lists, or of lists of such
            lists for a batch), or ``table`` (a list of rows).
        columns: Path of the names of a table's columns.
        kind: What it can be read as; None = a run or judgments.
        has: Paths that the answer has.
        has_not: Paths that it has not.
        hit: Paths that each hit has; ``a|b`` is one of two. ``[1]`` is the second of a pair, whose
            first is an object.
        hit_not: Paths that no hit has.
        query: Paths of the query's id, in an item of a batch or beside the answer. With a ``[]``
            it leads to several queries, each of which has the list.
        document: Paths of the document's id in a hit. The usual names follow, here and below.
        score: Paths of the score.
        distance: Paths of a score that is a distance: the smallest is the best.
        either: Paths of a score that is a distance or not: the order of the hits says which.
        grade: Paths of the grade.
        rank: Paths of the rank.
        index: Path of the document's place among the ``ids`` that were sent; empty = none.
        ordered: Whether hits without a score are in their order.
        binary: Whether, read as judgments, a hit without a grade has grade 1; if the row has paths
            of the grade, no usual name is one.
        incomplete: Path that is true, or not 0, in an answer that is not whole → what it says; a
            path after ``!`` is false there.
        refuse: Why it cannot be read; empty = it can.
        refuse_scores: Score that is none, as text → why a list with it is refused.
        sample: At most four lines of JSON.
    """

    name: str
    title: str
    family: str
    lists: tuple[str, ...]
    source: str = ""
    form: Literal["hits", "flat", "keyed", "graded", "ids", "rows", "columns", "table"] = "hits"
    columns: str = ""
    kind: Kind | None = None
    has: tuple[str, ...] = ()
    has_not: tuple[str, ...] = ()
    hit: tuple[str, ...] = ()
    hit_not: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    document: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    distance: tuple[str, ...] = ()
    either: tuple[str, ...] = ()
    grade: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()
    index: str = ""
    ordered: bool = False
    binary: bool = False
    incomplete: Mapping[str, str] = field(default_factory=dict)
    refuse: str = ""
    refuse_scores: Mapping[str, str] = field(default_factory=dict)
    sample: str = ""

    @cached_property
    def heads(self) -> frozenset[str]:
        """The keys of which an answer has one; empty = any may."""
        heads = frozenset(key for path in self.lists for key in path.partition(".")[0].split("|"))
        return frozenset() if heads & {"", "[]", "{}", "*", "?", "@"} else heads

    @cached_property
    def hit_names(self) -> Mapping[str, tuple[str, ...]]:
        """What a key of a hit holds → its names in small letters, those of the row first."""
        own = {
            "document": self.document,
            "score": (*self.score, *self.distance, *self.either),
            "grade": self.grade,
            "rank": self.rank,
        }
        usual = {**HIT_NAMES, "grade": () if self.binary and self.grade else HIT_NAMES["grade"]}
        return {
            role: tuple(dict.fromkeys([*(name.lower() for name in own.get(role, ())), *names]))
            for role, names in usual.items()
        }

    @cached_property
    def nested(self) -> tuple[str, ...]:
        """The paths of a hit's keys that may be inside of its objects."""
        paths = *self.document, *self.score, *self.distance, *self.either, *self.grade, *self.rank
        return tuple(path for path in paths if "." in path)

    def is_distance(self, name: str) -> bool:
        """Whether the key of a score holds a distance."""
        return name not in self.either and (
            name in self.distance or name.rpartition(".")[2].lower() in DISTANCE_NAMES
        )


#: Keys of a row that hold one path or several.
PATHS: Final = frozenset(
    each.name for each in fields(Layout) if str(each.type) == "tuple[str, ...]"
)


@cache
def load_layouts() -> tuple[Layout, ...]:
    """All rows, in the order in which they are tried."""
    folder = files(__name__)
    return tuple(
        make_layout(name, family, row)
        for family in FAMILIES
        for name, row in tomllib.loads((folder / f"{family}.toml").read_text("utf-8")).items()
    )


def make_layout(name: str, family: str, row: Mapping[str, Any]) -> Layout:
    """The layout that a row of a file describes."""
    cells: dict[str, Any] = {
        key: (value,) if key in PATHS and isinstance(value, str) else value
        for key, value in row.items()
    }
    cells |= {key: tuple(cells[key]) for key in PATHS & cells.keys()}
    return Layout(name, family=family, **cells)


def find_layout(name: str) -> Layout:
    """The row of a name.

    Raises:
        UnknownNameError: There is none.
    """
    layouts = {layout.name: layout for layout in load_layouts()}
    if name not in layouts:
        raise UnknownNameError("format", name, layouts)
    return layouts[name]
