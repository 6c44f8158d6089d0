"""The ledger of looks, ``looks.jsonl``: one line for each look at held-out queries.

A look is written before its result is known, and its verdict afterwards, so that an interrupted run
counts too. The file is replaced as a whole under a lock: concurrent runs wait for each other, and a
killed one leaves the old file or the new one. Each line ends with a digest of itself, and names the
lines before it; lines of two branches of a repository can be merged.

Format history:
    1   first version
    2   each line has a digest
    3   ``line``, ``previous``, ``judgments``; lines of earlier versions are read, too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from pydantic import Field, ValidationError

from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Value
from fusion_bench.errors import DataError
from fusion_bench.util.chained_lines import digest_line, find_gap, follow_lines
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.files.folder_lock import lock_folder
from fusion_bench.util.files.regular_files import read_regular_text
from fusion_bench.util.os_errors import explain_error

#: The name of the file, beside a dataset's ``dataset.yaml``.
LEDGER_NAME = "looks.jsonl"
Digest = Annotated[str, Field(pattern="^[0-9a-f]+$")]


class LookPlan(StrictModel):
    """What was declared before the first look of a plan.

    Attributes:
        max_queries: Held-out queries of its last look.
        parameters: The frozen numbers, path → value.
        tuned_on: Digests of the queries that they were tuned on.
    """

    max_queries: Annotated[int, Field(ge=1)]
    parameters: dict[str, Value]
    tuned_on: tuple[Digest, ...]


class Look(StrictModel):
    """One look.

    Attributes:
        version: Of the layout of a line.
        experiment: Name of the experiment.
        system: The system that was tuned.
        measure: What was compared.
        date: When, ISO 8601.
        numbers: Digest of the measure, the chosen numbers and the held-out values.
        number: j, counted from 1 among the looks that share held-out queries.
        level: The one-sided level that it was tested at.
        verdict: Of the run; None = it did not end.
        plan: The plan that it belongs to; None = none.
        queries: Digests of the ids of the held-out queries, sorted.
        judgments: Digests of what is judged relevant for each, sorted: another id of a query, in
            a copy of the dataset, say, is another digest of the id, and the same one here.
        line: Its number in the ledger; None = not written yet, or by an earlier version.
        previous: Digests of the lines that it follows, see ``util.chained_lines``.
    """

    version: Literal[1, 2, 3] = 3
    experiment: str
    system: str
    measure: str
    date: str
    numbers: Digest
    number: Annotated[int, Field(ge=1)]
    level: Annotated[float, Field(ge=0, le=1)]
    verdict: str | None = None
    plan: LookPlan | None = None
    queries: Annotated[tuple[Digest, ...], Field(min_length=1)]
    judgments: tuple[Digest, ...] = ()
    line: Annotated[int, Field(ge=1)] | None = None
    previous: tuple[Digest, ...] = ()

    @property
    def contents(self) -> frozenset[str]:
        """What tells whether another look is at the same queries."""
        return frozenset((*self.queries, *self.judgments))

    @property
    def digest(self) -> str:
        """Of all but the verdict, which comes later."""
        return digest_line(_dump_look(self.model_copy(update={"verdict": None})))

    def asks_same(self, other: Look) -> bool:
        """Whether both ask about the same numbers on the same queries."""
        return (self.numbers, self.queries) == (other.numbers, other.queries)


def format_look(look: Look) -> str:
    """A line of a ledger."""
    text = _dump_look(look)
    return f"{text if look.version == 1 else add_line_digest(text)}\n"


def _dump_look(look: Look) -> str:
    """JSON in which a line of an earlier version has its own fields."""
    newer = {"judgments", "line", "previous"} if look.version < 3 else None
    return look.model_dump_json(exclude=newer)


def read_looks(path: Path) -> list[Look]:
    """The looks of a ledger, in its order; empty where there is no such file.

    Raises:
        DataError: A line is no look, or follows one that is not there; names file and line.
    """
    try:
        text = read_regular_text(path)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {explain_error(error)}") from error
    numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    looks = [_parse_line(line.rstrip("\r"), f"{path}:{number}") for number, line in numbered]
    gap = find_gap(looks)
    if gap is not None:
        _refuse_line(f"{path}:{numbered[gap][0]}", "a line before it was removed or edited")
    return looks


def _parse_line(line: str, where: str) -> Look:
    text = strip_line_digest(line)
    if text is None and not line.startswith('{"version":1,'):
        _refuse_line(where, "its digest does not match: it was edited or damaged")
    try:
        look = Look.model_validate_json(text or line)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        _refuse_line(where, f"{place}: {first['msg']}" if place else first["msg"])
    if (look.version == 3) is not (look.line is not None):
        _refuse_line(where, "line: a line of version 3 has a number, an earlier one has none")
    return look


def _refuse_line(where: str, reason: str) -> NoReturn:
    raise DataError(
        f"{where}: not a line of a ledger of looks ({reason}): restore the file, for example "
        "from version control; without it looks are miscounted"
    )


def related_looks(looks: Sequence[Look], contents: Iterable[str]) -> list[Look]:
    """The looks that belong together with one at these queries, in their order.

    Two looks belong together where they share held-out queries, by their ids or their judgments.
    Links are followed: where A shares queries with B, and B with C, all three belong together.

    Args:
        looks: Of the ledger.
        contents: :attr:`Look.contents` of that one.
    """
    reached, related = set(contents), [False] * len(looks)
    is_growing = True
    while is_growing:
        is_growing = False
        for index, look in enumerate(looks):
            if not related[index] and not reached.isdisjoint(look.contents):
                reached.update(look.contents)
                related[index] = is_growing = True
    return [look for look, is_related in zip(looks, related, strict=True) if is_related]


def update_ledger(path: Path, change: Callable[[list[Look]], list[Look]]) -> list[Look]:
    """Replace the looks of a ledger by what ``change`` makes of them, one process at a time.

    Args:
        path: The file; made with its folder if need be.
        change: The looks in the file → those to write; a new one gets its place among them.

    Returns:
        The looks as written.

    Raises:
        DataError: A line is no look.
        FusionBenchError: The file cannot be written.
    """
    with lock_folder(path.parent):
        before = read_looks(path)
        after: list[Look] = []
        for look in change(list(before)):
            is_new = look.version == 3 and look.line is None
            after.append(look.model_copy(update=follow_lines(after)) if is_new else look)
        if after != before:
            write_atomic(path, "".join(map(format_look, after)).encode())
    return after
