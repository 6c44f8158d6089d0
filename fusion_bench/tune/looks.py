"""The looks at held-out queries: their ledger, the number of the next, its level.

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

import contextlib
import hashlib
import json
import os
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.experiment.settings import LookSettings
from fusion_bench.io.chained_ledger import LedgerFormat
from fusion_bench.io.fingerprints import judgment_digests, query_digests
from fusion_bench.report import tuning_records as record
from fusion_bench.report.tuning_records import Look, TuningReport
from fusion_bench.stats.intervals import POWER
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.held_out_report import SearchOutcome
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.util.digests import add_line_digest, digest_line, follow_lines
from fusion_bench.util.files import lock_folder, read_regular_text, resolve_path, write_atomic

#: Hexadecimal digits of the digest of the numbers.
NUMBERS_DIGITS = 32
#: Decimals to which the values of one look must agree with those of another to be the same.
DECIMALS = 9


def numbers_digest(
    measure: str,
    numbers: Mapping[str, object],
    queries: Sequence[str],
    default: FloatArray,
    tuned: FloatArray,
) -> str:
    """Digest of what a look asks about: other values, as of other judgments, are another question.

    Args:
        measure: What is compared.
        numbers: All that was chosen, as JSON has it.
        queries: Ids of the held-out queries, shape (H,), in any order.
        default: Shape (H,), the values of the default.
        tuned: Shape (H,), the values of the chosen numbers.
    """
    before, after = (np.round(values, DECIMALS) + 0.0 for values in (default, tuned))
    values = sorted(zip(queries, before.tolist(), after.tolist(), strict=True))
    text = json.dumps([measure, numbers, values], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:NUMBERS_DIGITS]


#: The name of the file, beside a dataset's ``dataset.yaml``.
LEDGER_NAME = "looks.jsonl"
Digest = Annotated[str, Field(pattern="^[0-9a-f]+$")]


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
        queries: Digests of the ids of the held-out queries, sorted.
        judgments: Digests of what is judged relevant for each, sorted: another id of a query, in
            a copy of the dataset, say, is another digest of the id, and the same one here.
        line: Its number in the ledger; None = not written yet, or by an earlier version.
        previous: Digests of the lines that it follows, see ``util.digests``.
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
    plan: dict[str, Any] | None = None
    queries: Annotated[tuple[Digest, ...], Field(min_length=1)]
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
        return digest_line(_dump_look(self.model_copy(update={"verdict": None})))

    def asks_same(self, other: LedgerEntry) -> bool:
        """Whether both ask about the same numbers on the same queries."""
        return (self.numbers, self.queries) == (other.numbers, other.queries)


def format_look(look: LedgerEntry) -> str:
    """A line of a ledger."""
    text = _dump_look(look)
    return f"{text if look.version == 1 else add_line_digest(text)}\n"


def _dump_look(look: LedgerEntry) -> str:
    """JSON in which a line of an earlier version has its own fields."""
    newer = {"judgments", "line", "previous"} if look.version < 3 else None
    return look.model_dump_json(exclude=newer)


def read_looks(path: Path) -> list[LedgerEntry]:
    """The looks of a ledger, in its order; empty where there is no such file.

    Raises:
        DataError: A line is no look, or follows one that is not there; names file and line.
    """
    return LOOKS.parse_text(LOOKS.read_text(path), path)


def _parse_look(text: str) -> LedgerEntry:
    look = LedgerEntry.model_validate_json(text)
    if (look.version == 3) is not (look.line is not None):
        raise ValueError("line: a line of version 3 has a number, an earlier one has none")
    return look


LOOKS = LedgerFormat(
    _parse_look, "ledger of looks", "without it looks are miscounted", '{"version":1,'
)


def related_looks(looks: Sequence[LedgerEntry], contents: Iterable[str]) -> list[LedgerEntry]:
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


def update_ledger(
    path: Path, change: Callable[[list[LedgerEntry]], list[LedgerEntry]]
) -> list[LedgerEntry]:
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
        after: list[LedgerEntry] = []
        for look in change(list(before)):
            is_new = look.version == 3 and look.line is None
            after.append(look.model_copy(update=follow_lines(after)) if is_new else look)
        if after != before:
            write_atomic(path, "".join(map(format_look, after)).encode())
    return after


#: Shares of α: of the first look, and of all later ones together.
FIRST_SHARE, LATER_SHARE = 0.4, 0.1
_NORMAL: Final = NormalDist()
_POWER: Final = _NORMAL.inv_cdf(POWER)


def look_level(number: int, alpha: float = 0.05) -> float:
    """The one-sided level of a look: .02, then .005·2^−(j−1); α/2 in all, by the union bound.

    Args:
        number: j, from 1.
        alpha: Two-sided level of a single look.
    """
    return (FIRST_SHARE if number == 1 else LATER_SHARE * 0.5 ** (number - 1)) * alpha


def power_at_level(level: float, *, single: float = 0.025) -> float:
    """Power at a one-sided level, where it is .8 at ``single``; normal approximation."""
    return _NORMAL.cdf(_POWER + _NORMAL.inv_cdf(1 - single) + _NORMAL.inv_cdf(level))


def query_factor(level: float, *, single: float = 0.025) -> float:
    """Queries for power .8 at a one-sided level ÷ those at ``single``; normal approximation."""
    return ((_POWER - _NORMAL.inv_cdf(level)) / (_POWER - _NORMAL.inv_cdf(single))) ** 2


@dataclass(frozen=True)
class LookCounter:
    """Counts the looks of one dataset.

    Attributes:
        path: The ledger that looks are written to; None = they are not counted.
        alpha: Two-sided level of a single look.
        max_queries: Of the settings; it has no effect, which the report says.
        readonly: A ledger that is read too, and cannot be written to; None = there is none.
        note: Why looks are not counted, or are counted elsewhere; empty = neither.
        earlier: The dataset and the look of the report that the run replaces; None = there is none.
    """

    path: Path | None
    alpha: float = 0.05
    max_queries: int | None = None
    readonly: Path | None = None
    note: str = ""
    earlier: tuple[str, record.Look] | None = None

    def open_look(self, look: LedgerEntry) -> LedgerEntry:
        """Write a look without its verdict, unless it was made before.

        Args:
            look: What is looked at; its number and level are not read.

        Returns:
            The look with its number and its level.

        Raises:
            FusionBenchError: The ledger is malformed, or cannot be written.
        """
        opened: list[LedgerEntry] = []

        def add(looks: list[LedgerEntry]) -> list[LedgerEntry]:
            known = [*self._read_readonly(), *looks]
            opened.extend(item for item in known if item.asks_same(look))
            return looks if opened else [*looks, self._number(look, known)]

        if self.path is None:
            return look.model_copy(update={"level": self.alpha / 2})
        looks = update_ledger(self.path, add)
        return opened[0] if opened else looks[-1]

    def close_look(self, look: LedgerEntry, verdict: str) -> None:
        """Write the verdict of a look that :meth:`open_look` returned."""
        if self.path is not None:
            closed = look.model_copy(update={"verdict": verdict})
            update_ledger(
                self.path,
                lambda looks: [closed if item.asks_same(look) else item for item in looks],
            )

    def describe(self, look: LedgerEntry) -> record.Look:
        """The record of an opened look, for the report."""
        single = self.alpha / 2
        shared = {"level": look.level, "power": power_at_level(look.level, single=single)}
        if self.path is None:
            return record.Look(number=None, note=self.note, **shared)
        number = len(related_looks(self._read_all(), look.contents)) + 1
        level = look_level(number, self.alpha)
        return record.Look(
            number=look.number,
            next_number=number,
            next_level=level,
            next_query_factor=query_factor(level, single=single),
            is_repeated=look.verdict is not None,
            file=str(self.path),
            line=look.line,
            digest=None if look.line is None else look.digest,
            note=self.note,
            max_queries=self.max_queries,
            **shared,
        )

    def describe_lost(self, dataset: str) -> str:
        """Describe an earlier report's look that the ledger lacks; empty if none."""
        if self.earlier is None or self.earlier[0] != dataset or self.earlier[1].line is None:
            return ""
        look = self.earlier[1]
        if any((each.line, each.digest) == (look.line, look.digest) for each in self._read_all()):
            return ""
        return (
            f"line {look.line} of {look.file}, look {look.number}, on which the report before this "
            "one relies, is not in the ledger"
        )

    def _read_readonly(self) -> list[LedgerEntry]:
        return [] if self.readonly is None else read_looks(self.readonly)

    def _read_all(self) -> list[LedgerEntry]:
        return self._read_readonly() + ([] if self.path is None else read_looks(self.path))

    def _number(self, look: LedgerEntry, known: Sequence[LedgerEntry]) -> LedgerEntry:
        """The look with the number and the level that follow from the looks before it."""
        number = len(related_looks(known, look.contents)) + 1
        level = look_level(number, self.alpha)
        return look.model_copy(update={"number": number, "level": level})


#: Of data in memory.
UNCOUNTED = LookCounter(None, note="the data are in memory: name a ledger, looks: {file: …}")


def find_ledger(
    settings: LookSettings,
    *,
    alpha: float,
    base: Path | None,
    dataset: Path | None,
    out: Path | None,
) -> LookCounter:
    """Find the ledger that counts the looks at a dataset.

    Args:
        settings: Of the experiment.
        alpha: Two-sided level of a single look.
        base: Folder of the experiment's file, for a relative ``file``; None = the working folder.
        dataset: Folder of the ``dataset.yaml``; None = the data are in memory.
        out: Folder of the outputs, for a dataset that cannot be written to, or that an installed
            package brought, with which the ledger would go; None = there is none.

    Raises:
        DataError: The ledger is malformed, or lacks a look that git has at ``HEAD``.
        ConfigError: git cannot say which repository is the ledger's.
    """
    earlier = None
    # Without a report there, or with one of another kind, there is no earlier look.
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        report = json.loads(read_regular_text((out or Path()) / "tuning.json"))
        earlier = str(report["dataset"]), Look.model_validate(report["look"])
    counter = LookCounter(None, alpha, settings.max_queries, earlier=earlier)
    if not settings.count:
        return replace(counter, note="'tune.looks.count' is false")
    if settings.file is not None:
        return _check_committed(replace(counter, path=(base or Path()) / settings.file))
    if dataset is None:
        return replace(counter, note=UNCOUNTED.note)
    beside = dataset / LEDGER_NAME
    note = f"{dataset} cannot be written to"
    places = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    if any(resolve_path(dataset).is_relative_to(resolve_path(Path(place))) for place in places):
        note = f"{dataset} belongs to an installed package"
    elif os.access(dataset, os.W_OK):
        return _check_committed(replace(counter, path=beside))
    if out is None:
        return replace(counter, note=f"{note}: name a ledger")
    return _check_committed(replace(counter, path=out / LEDGER_NAME, readonly=beside, note=note))


def _check_committed(counter: LookCounter) -> LookCounter:
    """Return the counter, unless its ledgers lack what git has of them."""
    for path in filter(None, (counter.path, counter.readonly)):
        LOOKS.check_committed(path, read_looks(path))
    return counter


@dataclass(frozen=True, eq=False)
class HeldOutLook:
    """An opened look, until its verdict is known.

    Attributes:
        counter: Counts the looks of the dataset.
        look: With its number and level.
        record: For the report.
    """

    counter: LookCounter
    look: LedgerEntry
    record: record.Look

    @property
    def level(self) -> float:
        """The one-sided level of the verdicts."""
        return self.look.level

    @property
    def next_factor(self) -> float:
        """Critical value of the next look ÷ that of this one (normal approximation)."""
        following, normal = self.record.next_level, NormalDist()
        if following is None or not 0 < self.level < 0.5:
            return 1.0
        return normal.inv_cdf(following) / normal.inv_cdf(self.level)

    def close(self, report: TuningReport) -> TuningReport:
        """Write the verdict into the ledger; returns the report with the look."""
        self.counter.close_look(self.look, report.verdict)
        lost = self.counter.describe_lost(report.dataset)
        return report.model_copy(update={"look": self.record.model_copy(update={"lost": lost})})


def open_held_out_look(
    counter: LookCounter,
    evaluation: HeldOutEvaluation,
    outcome: SearchOutcome,
    *,
    experiment: str,
    date: str,
    system: str | None = None,
) -> HeldOutLook:
    """Count the look that the verdicts of a run are about to take.

    Args:
        counter: Counts the looks of the dataset.
        evaluation: The objective, its split and the rules.
        outcome: What was chosen, and parameters by class.
        experiment: Name of the experiment.
        date: When, ISO 8601.
        system: What is tested against the default; None = the default with other numbers.

    Raises:
        FusionBenchError: The ledger is malformed, or cannot be written.
    """
    objective, split, crag = evaluation.objective, evaluation.split, evaluation.tuning.crag
    chosen, per_type = outcome.chosen, outcome.per_type
    held_out = held_out_queries(objective, split)
    default, tuned = objective.evaluate_params([objective.default_params, chosen.params])
    numbers = {
        "params": dict(chosen.params),
        "by_class": None if per_type is None else {k: dict(v) for k, v in per_type.params.items()},
        "crag": None if crag is None else crag.model_dump(mode="json"),
    }
    mask, measure = split.held_out, objective.measure.name
    look = counter.open_look(
        LedgerEntry(
            experiment=experiment,
            system=system or objective.system.name,
            measure=measure,
            date=date,
            numbers=numbers_digest(measure, numbers, held_out, default[mask], tuned[mask]),
            number=1,
            level=counter.alpha / 2,
            queries=query_digests(held_out),
            judgments=judgment_digests(objective.runs.qrels, held_out),
        )
    )
    return HeldOutLook(counter, look, counter.describe(look))


def held_out_queries(objective: TuningObjective, split: QuerySplit) -> list[str]:
    """Ids of the held-out queries."""
    return [objective.runs.queries[q] for q in np.flatnonzero(split.held_out)]
