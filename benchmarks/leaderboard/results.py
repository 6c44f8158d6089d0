"""The stored cells of a collection, compared with the baseline.

Tuned rows are judged like the others, and by flips in which every one of them chooses anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from scipy.stats import rankdata

from benchmarks.leaderboard import records
from benchmarks.leaderboard.evaluate import FILLED, JUDGED, JUDGED_ONLY, fingerprint_row
from benchmarks.leaderboard.rows import BASELINE, MEASURE
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import NOISE, FloatArray, IntArray
from fusion_bench.stats.comparison import BETTER, WORSE, Answer, Comparison, veto_answer
from fusion_bench.stats.comparison_family import MIN_GAIN, compare_family
from fusion_bench.stats.intervals import ALPHA
from fusion_bench.stats.unjudged import UnjudgedEvidence, compare_unjudged
from fusion_bench.stats.values import MeasuredValues, ValueTable

#: Kinds of rows that are compared with the baseline.
COMPARED: Final = (
    *("source", "chosen", "method", "tuned", "learned"),
    *("engine", "engine, whole lists", "floor"),
)
#: What stands for the baseline of rows that are differences already.
ZERO: Final = "no difference"


#: Stored statistics are rounded to less than this.
STORED: Final = 1e-4


def adjust_for_choice(
    rows: Sequence[Comparison], nulls: Sequence[Sequence[float]]
) -> list[Comparison]:
    """Comparisons of tuned rows whose p and intervals know that parameters were chosen.

    Cross-fitted values share queries between folds, so that max-T alone finds a difference too
    often where there is none. Here max |t| over the rows is compared with its values in flips of
    signs in which each row chooses its parameters anew. The stricter of both tests counts.

    Args:
        rows: From a family of all rows; each with a standard error.
        nulls: Of each row its t in every flip; flips of the same number belong together.
    """
    known = [row for row in rows if row.standard_error > 0]
    if not known:
        return list(rows)
    sizes = np.abs([_statistic(row) for row in known])
    flipped = [null for row, null in zip(rows, nulls, strict=True) if row.standard_error > 0]
    maxima = np.append(np.abs(np.array(flipped)).max(axis=0), sizes.max())
    critical = float(np.sort(maxima)[-max(math.floor(ALPHA * len(maxima) + NOISE), 1)])
    return [_adjust(row, maxima, critical) if row.standard_error > 0 else row for row in rows]


def _statistic(row: Comparison) -> float:
    return row.difference / row.standard_error


def _adjust(row: Comparison, maxima: FloatArray, critical: float) -> Comparison:
    share = float((maxima >= abs(_statistic(row)) - STORED).mean())
    p = max(share, row.p)
    critical = max(critical, row.critical_value)
    width = critical * row.standard_error
    low, high = max(row.difference - width, -1.0), min(row.difference + width, 1.0)
    is_within = max(-low, high) < MIN_GAIN
    update = {
        "low": low,
        "high": high,
        "p": p,
        "critical_value": critical,
        "answer": _weaken(row.answer, is_shown=p <= ALPHA, is_within=is_within),
    }
    return row.model_copy(update=update)


def _weaken(answer: Answer | None, *, is_shown: bool, is_within: bool) -> Answer | None:
    """What is left of the answer of max-T alone."""
    if answer in (*BETTER, *WORSE) and is_shown:
        side: Answer = "better" if answer in BETTER else "worse"
        return answer if is_within else side
    is_kept = answer == "identical" or (answer == "equivalent" and is_within)
    return answer if is_kept else "not shown"


@dataclass(frozen=True, eq=False)
class CollectionResults:
    """The finished rows of a collection.

    Attributes:
        head: What the rows have in common.
        cells: Finished rows by name, with their values.
    """

    head: records.CollectionHead
    cells: Mapping[str, records.Cell]

    @property
    def is_scored(self) -> bool:
        """Whether the scores of two lists or more say more than their ranks."""
        return sum(each.is_scored for each in self.head.lists) > 1

    @property
    def ranked_lists(self) -> list[str]:
        """The lists whose scores say no more than their ranks."""
        return [each.name for each in self.head.lists if not each.is_scored]

    def values(self, name: str, measure: str = MEASURE.name) -> FloatArray | None:
        """(Q,): the values of a row; None = there are none."""
        if name == ZERO:
            return np.zeros(len(self.head.queries))
        cell = self.cells.get(name)
        known = None if cell is None else cell.values.get(measure)
        return None if known is None else np.array(known)

    def mean(self, name: str, measure: str = MEASURE.name) -> float:
        """The mean of a row; NaN = it has no values."""
        values = self.values(name, measure)
        return float("nan") if values is None else float(values.mean())

    def rows_of(self, *kinds: str) -> list[records.SystemRow]:
        """The finished rows of these kinds."""
        return [row for row in self.head.rows if row.kind in kinds and row.name in self.cells]

    def best(self, names: Iterable[str]) -> str:
        """The name of the row with the greatest mean."""
        return max(names, key=self.mean)

    def compare(self, names: Iterable[str], baseline: str) -> dict[str, Comparison]:
        """Comparisons of rows with a baseline, one family; empty where one has no values."""
        table = self.table(names, baseline)
        pairs = [] if table is None else table.pairs(MEASURE.name)
        return {each.candidate: each for each in compare_family(pairs)} if pairs else {}

    def table(self, names: Iterable[str], baseline: str = ZERO) -> ValueTable | None:
        """The values of rows and of a baseline; None = there is nothing to compare."""
        values = {name: self.values(name) for name in dict.fromkeys([baseline, *names])}
        known = {
            name: {MEASURE.name: MeasuredValues(row)}
            for name, row in values.items()
            if row is not None
        }
        if baseline not in known or len(known) < 2:
            return None
        measures = (MEASURE.name,)
        return ValueTable(known, baseline, measures, self.head.groups, measures)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Every compared row against the baseline; tuned ones know that they were chosen."""
        compared = self.compare([row.name for row in self.rows_of(*COMPARED)], BASELINE)
        tuned = [row.name for row in self.rows_of("tuned", "chosen") if row.name in compared]
        nulls = [self.cells[name].null for name in tuned]
        adjusted = adjust_for_choice([compared[name] for name in tuned], nulls)
        return compared | dict(zip(tuned, adjusted, strict=True))

    def judge(self, name: str) -> Comparison | None:
        """A row against the baseline, with what unjudged documents leave of the answer."""
        comparison = self.comparisons.get(name)
        if comparison is None or comparison.answer is None:
            return comparison
        candidate, baseline = self._evidence(name), self._evidence(BASELINE)
        if self.head.judgments == "complete" or candidate is None or baseline is None:
            return comparison
        codes, kind = self._groups, self.head.judgments
        unjudged = compare_unjudged(candidate, baseline, groups=codes, kind=kind)
        answer = veto_answer(comparison.answer, unjudged, MIN_GAIN)
        return comparison.model_copy(update={"answer": answer})

    def _evidence(self, name: str) -> UnjudgedEvidence | None:
        """Of a row; None = it has none. The share of unjudged documents is not read."""
        judged_only = self.values(name, JUDGED_ONLY)
        if judged_only is None:
            return None
        filled = self.values(name, FILLED)
        return UnjudgedEvidence(np.zeros(len(judged_only)), judged_only, filled)

    @property
    def judged(self) -> float:
        """Mean share of judged documents in the top 10 of the best untuned method."""
        best = self.best(row.name for row in self.rows_of("method"))
        return self.mean(best, JUDGED.name)

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Rank of each compared row by its mean; equal rows share the mean of their ranks."""
        names = [row.name for row in self.rows_of(*COMPARED)]
        means = np.round([self.mean(name) for name in names], 12)
        return dict(zip(names, rankdata(-means).tolist(), strict=True))

    @cached_property
    def _groups(self) -> IntArray:
        return number_by_appearance(self.head.groups)[0]


def collect_cells(folder: Path, clusters: Mapping[str, str]) -> records.Leaderboard:
    """The finished cells below a folder that are of the present data, code and budget.

    Args:
        folder: With a folder a collection.
        clusters: Collection → its cluster.
    """
    collections = []
    for path in sorted(path for path in folder.glob("*") if path.is_dir()):
        head = records.read_head(path)
        if head is not None:
            collections.append(
                records.StoredCollection(head=head, cells=tuple(_read_cells(path, head)))
            )
    return records.Leaderboard(collections=tuple(collections), clusters=dict(clusters))


def _read_cells(folder: Path, head: records.CollectionHead) -> Iterator[records.Cell]:
    for row in head.rows:
        cell = records.read_cell(records.cell_path(folder, row.name))
        wanted = fingerprint_row(head.fingerprint, row, head.budget)
        if cell is not None and cell.fingerprint == wanted:
            yield cell


def list_results(leaderboard: records.Leaderboard) -> list[CollectionResults]:
    """Every collection with a finished baseline, in order of name."""
    results = []
    for each in leaderboard.collections:
        cells = {cell.row.name: cell for cell in each.cells if cell.values}
        if BASELINE in cells:
            results.append(CollectionResults(each.head, cells))
    return sorted(results, key=lambda found: found.head.name)
