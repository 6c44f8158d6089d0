"""The ledger beside a dataset: the judged queries whose values were shown, and the looks of tuning.

A look is written before its result is known, and its verdict afterwards, so that an interrupted run
counts too. The file is replaced as a whole under a lock: concurrent runs wait for each other, and a
killed one leaves the old file or the new one. Each line ends with a digest of itself, and names the
lines before it; lines of two branches of a repository can be merged.

Format history:
    1   first version
    2   each line has a digest
    3   ``line``, ``previous``, ``judgments``
    4   a line ``"kind":"queries"`` holds queries once; looks at them hold its digest and their
        number; lines of earlier versions are read, too
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.chained_ledger import LedgerFormat, digest_line, follow_lines
from fusion_bench.io.fingerprints import judgment_digests, query_digests
from fusion_bench.io.outputs import DATASET_FILE
from fusion_bench.util.digests import add_line_digest, hash_values
from fusion_bench.util.files import lock_folder, resolve_path, write_atomic

#: The name of the file, beside a dataset's ``dataset.yaml``.
LEDGER_NAME: Final = "looks.jsonl"
Digest = Annotated[str, Field(pattern="^[0-9a-f]+$")]
#: Hexadecimal digits of the digest of a set of queries.
SET_DIGITS = 16


class QuerySet(StrictModel):
    """Judged queries whose values a command showed.

    Attributes:
        version: Of the layout of a line.
        kind: Tells it from a look.
        date: When, ISO 8601.
        queries: Digests of their ids, sorted.
        judgments: Digests of what is judged relevant for each, sorted: another id of a query, in
            a copy of the dataset, say, is another digest of the id, and the same one here.
        line: Its number in the ledger; None = not written yet.
        previous: Digests of the lines that it follows, see ``io.chained_ledger``.
    """

    version: Literal[4] = 4
    kind: Literal["queries"] = "queries"
    date: str
    queries: Annotated[tuple[Digest, ...], Field(min_length=1)]
    judgments: tuple[Digest, ...] = ()
    line: Annotated[int, Field(ge=1)] | None = None
    previous: tuple[Digest, ...] = ()

    @property
    def set_digest(self) -> str:
        """The digest by which looks name these queries."""
        return hash_values(self.queries, self.judgments)[:SET_DIGITS]

    @property
    def contents(self) -> frozenset[str]:
        """Digests that tell whether a look is at one of these queries."""
        return frozenset((*self.queries, *self.judgments))

    @property
    def digest(self) -> str:
        """The digest of all that it holds."""
        return digest_line(self.dump())

    def dump(self) -> str:
        """Its line without a digest."""
        return self.model_dump_json()


class LedgerEntry(StrictModel):
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
        plan: Of an earlier version: what was declared before the first look; None = nothing.
        query_set: Digest of its :class:`QuerySet`; None = not written, or of an earlier version.
        count: The number of its queries; None likewise.
        queries: Digests of the ids of the held-out queries, sorted; in the ledger only in lines of
            earlier versions.
        judgments: Digests of what is judged relevant for each, likewise.
        line: Its number in the ledger; None = not written yet, or by an earlier version.
        previous: Digests of the lines that it follows, see ``io.chained_ledger``.
    """

    version: Literal[1, 2, 3, 4] = 4
    experiment: str
    system: str
    measure: str
    date: str
    numbers: Digest
    number: Annotated[int, Field(ge=1)]
    level: Annotated[float, Field(ge=0, le=1)]
    verdict: str | None = None
    plan: dict[str, Any] | None = None
    query_set: Digest | None = None
    count: Annotated[int, Field(ge=1)] | None = None
    queries: tuple[Digest, ...] = ()
    judgments: tuple[Digest, ...] = ()
    line: Annotated[int, Field(ge=1)] | None = None
    previous: tuple[Digest, ...] = ()

    @property
    def contents(self) -> frozenset[str]:
        """Digests that tell whether another look is at the same queries."""
        return frozenset((*self.queries, *self.judgments))

    @property
    def digest(self) -> str:
        """Digest of the look without its verdict, which comes later."""
        return digest_line(self.model_copy(update={"verdict": None}).dump())

    def dump(self) -> str:
        """Its line without a digest; a line of an earlier version has its own fields."""
        left_out = {"queries", "judgments"} if self.version == 4 else {"query_set", "count"}
        left_out |= {"judgments", "line", "previous"} if self.version < 3 else set()
        return self.model_dump_json(exclude=left_out)

    def asks_same(self, other: LedgerEntry) -> bool:
        """Whether both ask about the same numbers on the same queries."""
        return (self.numbers, self.queries) == (other.numbers, other.queries)


LedgerLine: TypeAlias = QuerySet | LedgerEntry


def format_line(line: LedgerLine) -> str:
    """A line of a ledger."""
    text = line.dump()
    return f"{text if line.version == 1 else add_line_digest(text)}\n"


def _parse_line(text: str) -> LedgerLine:
    if text.startswith('{"version":4,"kind":'):
        return QuerySet.model_validate_json(text)
    look = LedgerEntry.model_validate_json(text)
    if (look.version >= 3) is not (look.line is not None):
        raise ValueError("line: a line from version 3 on has a number, an earlier one has none")
    if (look.version == 4) is not bool(look.query_set and look.count) or (
        (look.version < 4) is not bool(look.queries)
    ):
        raise ValueError("queries: from version 4 on a digest and a number, before a list")
    return look


LOOKS = LedgerFormat(
    _parse_line, "ledger of looks", "without it looks are miscounted", '{"version":1,'
)


def _parse_ledger(text: str, where: Path | str) -> list[LedgerLine]:
    """The lines of a text; each look has its queries."""
    lines: list[LedgerLine] = []
    sets = dict[str | None, QuerySet]()
    for number, line in enumerate(LOOKS.parse_text(text, where), 1):
        if isinstance(line, QuerySet):
            sets[line.set_digest] = line
        elif line.version == 4:
            if line.query_set not in sets:
                LOOKS.refuse(f"{where}:{number}", "no line before it has its queries")
            known = sets[line.query_set]
            line = line.model_copy(update={"queries": known.queries, "judgments": known.judgments})
        lines.append(line)
    return lines


def read_ledger(path: Path) -> list[LedgerLine]:
    """The lines of a ledger; empty where there is no such file.

    Raises:
        DataError: A line is none, or follows one that is not there; names file and line.
    """
    return _parse_ledger(LOOKS.read_text(path), path)


def read_looks(path: Path) -> list[LedgerEntry]:
    """The looks of a ledger, in its order; raises as :func:`read_ledger`."""
    return [line for line in read_ledger(path) if isinstance(line, LedgerEntry)]


def read_committed(path: Path) -> list[LedgerLine]:
    """The lines of a ledger, if none is missing that git has of it at ``HEAD``.

    Raises:
        DataError: The ledger is malformed, or lacks a line.
        ConfigError: git cannot say which repository is the ledger's.
    """
    lines = read_ledger(path)
    LOOKS.check_committed(path, lines, _parse_ledger)
    return lines


def related_looks(looks: Sequence[LedgerEntry], contents: Iterable[str]) -> list[LedgerEntry]:
    """The looks that belong together with one at these queries, in their order.

    Two looks belong together where they share held-out queries, by their ids or their judgments.
    Links are followed: where A shares queries with B, and B with C, all three belong together.

    Args:
        looks: Of the ledger.
        contents: :attr:`LedgerEntry.contents` of that one.
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


def update_ledger(
    path: Path, change: Callable[[list[LedgerLine]], Sequence[LedgerLine]]
) -> list[LedgerLine]:
    """Replace the lines of a ledger by what ``change`` makes of them, one process at a time.

    Args:
        path: The file; made with its folder if need be.
        change: The lines in the file → those to write. A new one gets its place among them, and
            the queries of a new look a line of their own, unless they have one.

    Returns:
        The lines as written.

    Raises:
        DataError: A line is none.
        FusionBenchError: The file cannot be written.
    """
    with lock_folder(path.parent):
        before = read_ledger(path)
        after: list[LedgerLine] = []
        for line in change(list(before)):
            if line.line is not None or line.version < 3:
                after.append(line)
                continue
            named: dict[str, Any] = {}
            if isinstance(line, LedgerEntry):
                shown = QuerySet(date=line.date, queries=line.queries, judgments=line.judgments)
                named = {"query_set": shown.set_digest, "count": len(line.queries)}
                sets = {each.set_digest for each in after if isinstance(each, QuerySet)}
                if shown.set_digest not in sets:
                    after.append(shown.model_copy(update=follow_lines(after)))
            after.append(line.model_copy(update={**named, **follow_lines(after)}))
        if after != before:
            write_atomic(path, "".join(map(format_line, after)).encode())
    return after


def find_count_obstacle(dataset: Path) -> str:
    """Why nothing is counted in a dataset's folder; empty = its ledger can be written.

    With an installed package the ledger would go.
    """
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    if any(resolve_path(dataset).is_relative_to(resolve_path(Path(place))) for place in places):
        return f"{dataset} belongs to an installed package"
    return "" if os.access(dataset, os.W_OK) else f"{dataset} cannot be written to"


def find_dataset_folder(judgments: Path) -> Path | None:
    """The folder of the dataset to which a file of judgments belongs; None = there is none."""
    folders = resolve_path(judgments).parents
    return next((folder for folder in folders if (folder / DATASET_FILE).is_file()), None)


def find_query_set(folder: Path | None, digest: str) -> frozenset[str]:
    """The digests of the queries of which a ledger has a set; empty = it has no such set.

    Args:
        folder: Of the ``dataset.yaml``; None = there is no ledger.
        digest: Of the set: :func:`hash_values` of the digests.

    Raises:
        DataError: The ledger is malformed.
    """
    lines = [] if folder is None else read_ledger(folder / LEDGER_NAME)
    sets = (line.queries for line in lines if hash_values(line.queries) == digest)
    return frozenset(next(sets, ()))


def record_shown(
    folder: Path | None, qrels: Qrels, queries: Collection[str], *, as_set: bool = False
) -> None:
    """Write into the ledger of a dataset that values of its judged queries are shown.

    Nothing is written if the ledger has each of them, or if it cannot be written.

    Args:
        folder: Of the ``dataset.yaml``; None = the judgments are of no dataset.
        qrels: The judgments.
        queries: Ids of the queries; those without judgments do not count.
        as_set: Whether :func:`find_query_set` finds exactly these, judged or not.

    Raises:
        DataError: The ledger is malformed.
    """
    judged = {
        query for query, size in zip(qrels.queries, np.diff(qrels.offsets), strict=True) if size
    }
    names = set(queries) if as_set else judged.intersection(queries)
    digests = query_digests(names)
    if folder is None or not digests or find_count_obstacle(folder):
        return

    def add(lines: list[LedgerLine]) -> list[LedgerLine]:
        sets = [line.queries for line in lines]
        if digests in sets if as_set else {*chain(*sets)}.issuperset(digests):
            return lines
        judgments = judgment_digests(qrels, names)
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return [*lines, QuerySet(date=date, queries=digests, judgments=judgments)]

    path = folder / LEDGER_NAME
    lines = read_ledger(path)
    if add(lines) is not lines:
        with suppress(FusionBenchError):
            update_ledger(path, add)
