"""The looks at held-out queries: where they are counted, the number of the next, its level."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Final

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.experiment.settings import LookSettings
from fusion_bench.io.fingerprints import judgment_digests, query_digests
from fusion_bench.io.looks import (
    LEDGER_NAME,
    LedgerEntry,
    LedgerLine,
    find_count_obstacle,
    read_committed,
    read_looks,
    related_looks,
    update_ledger,
)
from fusion_bench.report import tuning_records as record
from fusion_bench.report.tuning_records import Look, TuningReport
from fusion_bench.stats.intervals import POWER_QUANTILE
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.held_out_report import SearchOutcome
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.util.files import read_regular_text

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


#: Shares of α: of the first look, and of all later ones together.
FIRST_SHARE, LATER_SHARE = 0.4, 0.1
_NORMAL: Final = NormalDist()


def look_level(number: int, alpha: float = 0.05) -> float:
    """The one-sided level of a look: .02, then .005·2^−(j−1); α/2 in all, by the union bound.

    Args:
        number: j, from 1.
        alpha: Two-sided level of a single look.
    """
    return (FIRST_SHARE if number == 1 else LATER_SHARE * 0.5 ** (number - 1)) * alpha


def power_at_level(level: float, *, single: float = 0.025) -> float:
    """Power at a one-sided level, where it is .8 at ``single``; normal approximation."""
    return _NORMAL.cdf(POWER_QUANTILE + _NORMAL.inv_cdf(1 - single) + _NORMAL.inv_cdf(level))


def query_factor(level: float, *, single: float = 0.025) -> float:
    """Queries for power .8 at a one-sided level ÷ those at ``single``; normal approximation."""
    return (
        (POWER_QUANTILE - _NORMAL.inv_cdf(level)) / (POWER_QUANTILE - _NORMAL.inv_cdf(single))
    ) ** 2


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

        def add(lines: list[LedgerLine]) -> list[LedgerLine]:
            looks = (line for line in lines if isinstance(line, LedgerEntry))
            known = [*self._read_readonly(), *looks]
            opened.extend(item for item in known if item.asks_same(look))
            if opened:
                return lines
            number = len(related_looks(known, look.contents)) + 1
            level = look_level(number, self.alpha)
            return [*lines, look.model_copy(update={"number": number, "level": level})]

        if self.path is None:
            return look.model_copy(update={"level": self.alpha / 2})
        looks = [line for line in update_ledger(self.path, add) if isinstance(line, LedgerEntry)]
        return opened[0] if opened else looks[-1]

    def close_look(self, look: LedgerEntry, verdict: str) -> None:
        """Write the verdict of a look that :meth:`open_look` returned."""
        if self.path is not None:
            closed = look.model_copy(update={"verdict": verdict})
            update_ledger(
                self.path,
                lambda lines: [closed if line.digest == look.digest else line for line in lines],
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
    note = find_count_obstacle(dataset)
    if not note:
        return _check_committed(replace(counter, path=beside))
    if out is None:
        return replace(counter, note=f"{note}: name a ledger")
    return _check_committed(replace(counter, path=out / LEDGER_NAME, readonly=beside, note=note))


def _check_committed(counter: LookCounter) -> LookCounter:
    """Return the counter, unless its ledgers lack what git has of them."""
    for path in filter(None, (counter.path, counter.readonly)):
        read_committed(path)
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
