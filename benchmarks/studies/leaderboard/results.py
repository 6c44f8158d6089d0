"""The stored cells of a collection, compared with the baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.studies.leaderboard.cells import (
    Cell,
    CollectionHead,
    Row,
    cell_path,
    read_cell,
    read_head,
)
from benchmarks.studies.leaderboard.evaluate import FILLED, JUDGED, fingerprint_row
from benchmarks.studies.leaderboard.methods import BASELINE, MEASURE
from benchmarks.studies.leaderboard.tuned_family import adjust_for_choice
from fusion_bench.checks.unjudged import UnjudgedEvidence, compare_unjudged
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.compared_reports import veto_answer
from fusion_bench.stats.comparison import Answer, Comparison, paired_difference
from fusion_bench.stats.comparison_family import MIN_GAIN, ComparedValues, compare_family
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean

#: Kinds of rows that are compared with the baseline and ranked against each other.
COMPARED: Final = (
    "source",
    "method",
    "tuned",
    "learned",
    "policy",
    "engine",
    "engine, whole lists",
    "floor",
)
#: Names for the best and the worst source of each collection, chosen on the evaluated queries.
BEST_SOURCE: Final = "best source"
WORST_SOURCE: Final = "worst source"
ORACLES: Final = {"best source per query": "source", "best method per query": "method"}


@dataclass(frozen=True, eq=False)
class CollectionResults:
    """The finished rows of a collection.

    Attributes:
        head: What the rows have in common.
        cells: Finished rows by name, with their values.
    """

    head: CollectionHead
    cells: dict[str, Cell]

    def values(self, name: str, measure: str = MEASURE.name) -> FloatArray | None:
        """(Q,): the values of a row or of an oracle; None = there are none."""
        if name in ORACLES:
            rows = [self.values(row.name, measure) for row in self.rows_of(ORACLES[name])]
            return np.max([row for row in rows if row is not None], axis=0) if rows else None
        cell = self.cells.get(self.resolve(name))
        return None if cell is None else np.array(cell.values[measure])

    def resolve(self, name: str) -> str:
        """The row that a name for a source stands for here; any other name itself."""
        if name not in {BEST_SOURCE, WORST_SOURCE}:
            return name
        choose = max if name == BEST_SOURCE else min
        sources = [row.name for row in self.rows_of("source")]
        return choose(sources, key=lambda source: self.mean(source) or 0.0, default=name)

    def mean(self, name: str, measure: str = MEASURE.name) -> float | None:
        """The mean of a row; None = it has no values."""
        values = self.values(name, measure)
        return None if values is None else float(values.mean())

    def rows_of(self, *kinds: str) -> list[Row]:
        """The finished rows of these kinds."""
        return [row for row in self.head.rows if row.kind in kinds and row.name in self.cells]

    def difference(self, first: str, second: str) -> MeanEstimate | None:
        """Mean of first − second with its interval; None where one has no values."""
        a, b = self.values(first), self.values(second)
        if a is None or b is None:
            return None
        return estimate_mean(paired_difference(a, b), self._groups)

    def compare(self, names: Iterable[str], baseline: str) -> dict[str, Comparison]:
        """Comparisons of rows with a baseline, one family."""
        table = self.table(names, baseline)
        return {} if table is None else {c.candidate: c for c in compare_family([table])[0]}

    def table(self, names: Iterable[str], baseline: str) -> ComparedValues | None:
        """The values of rows and of a baseline; None = there is nothing to compare."""
        values = {name: self.values(name) for name in dict.fromkeys([baseline, *names])}
        known = {name: row for name, row in values.items() if row is not None}
        if baseline not in known or len(known) < 2:
            return None
        return ComparedValues(MEASURE.name, known, baseline, self.head.groups, is_bounded=True)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Every compared row against the baseline; tuned ones know that they were chosen."""
        compared = self.compare([row.name for row in self.rows_of(*COMPARED)], BASELINE)
        tuned = [row.name for row in self.rows_of("tuned") if row.name in compared]
        nulls = [self.cells[name].null for name in tuned]
        adjusted = adjust_for_choice([compared[name] for name in tuned], nulls)
        return compared | dict(zip(tuned, adjusted, strict=True))

    def answer(self, name: str) -> Answer | None:
        """What the comparison of a row with the baseline shows; None = there is none."""
        comparison = self.comparisons.get(self.resolve(name))
        if comparison is None or comparison.answer is None:
            return None
        candidate, baseline = self._evidence(name), self._evidence(BASELINE)
        if self.head.judgments == "complete" or candidate is None or baseline is None:
            return comparison.answer
        kind = self.head.judgments
        unjudged = compare_unjudged(candidate, baseline, groups=self._groups, kind=kind)
        return veto_answer(comparison.answer, unjudged, MIN_GAIN)

    def _evidence(self, name: str) -> UnjudgedEvidence | None:
        """Of a row; None = it has no values. The share of unjudged documents is not read."""
        judged_only = self.values(name, JUDGED)
        if judged_only is None:
            return None
        cell = self.cells[self.resolve(name)]
        filled = np.array(cell.values[FILLED]) if FILLED in cell.values else None
        return UnjudgedEvidence(np.zeros(len(judged_only)), judged_only, filled)

    @cached_property
    def ranks(self) -> dict[str, float]:
        """Rank of each compared row by its mean; equal rows share the mean of their ranks."""
        names = [row.name for row in self.rows_of(*COMPARED)]
        means = np.array([round(float(self.mean(name) or 0.0), 12) for name in names])
        above = (means[None, :] > means[:, None]).sum(axis=1)
        equal = (means[None, :] == means[:, None]).sum(axis=1)
        return dict(zip(names, (above + (equal + 1) / 2).tolist(), strict=True))

    @cached_property
    def _groups(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return number_by_appearance(self.head.groups)[0]


def read_results(folder: Path) -> list[CollectionResults]:
    """Every collection with a finished baseline, in order of name."""
    results = []
    for path in sorted(path for path in folder.glob("*") if path.is_dir()):
        head = read_head(path)
        if head is None:
            continue
        cells = {row.name: _read_current(path, head, row) for row in head.rows}
        size = len(head.queries)
        finished = {
            name: cell
            for name, cell in cells.items()
            if cell is not None and len(cell.values.get(MEASURE.name, ())) == size
        }
        if BASELINE in finished:
            results.append(CollectionResults(head, finished))
    return results


def _read_current(folder: Path, head: CollectionHead, row: Row) -> Cell | None:
    """The cell of a row, unless it is of other data, code, configuration or budget."""
    cell = read_cell(cell_path(folder, row.name))
    wanted = fingerprint_row(head.fingerprint, row, head.budget)
    return cell if cell is not None and cell.fingerprint == wanted else None


def row_names(results: Sequence[CollectionResults], kind: str) -> list[str]:
    """Names of the rows of a kind in any collection, best mean rank first; two for all sources."""
    names = {row.name for each in results for row in each.rows_of(kind)}
    if kind == "source":
        names = {BEST_SOURCE, WORST_SOURCE}
    return sorted(names, key=lambda name: (mean_rank(results, name) or 0.0, name))


def count_answers(
    results: Sequence[CollectionResults], name: str, answers: Collection[Answer]
) -> int:
    """On how many collections a row has one of these answers."""
    return sum(each.answer(name) in answers for each in results)


def mean_rank(results: Sequence[CollectionResults], name: str) -> float | None:
    """Mean over the collections that have the row; None = none has."""
    rows = [(each.ranks, each.resolve(name)) for each in results]
    ranks = [known[row] for known, row in rows if row in known]
    return float(np.mean(ranks)) if ranks else None
