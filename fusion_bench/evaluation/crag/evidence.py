"""What CRAG's verdicts rest on: the best rerank score of each list, and the truth about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion_bench.blend import on_unit_scale
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.fitting import fit_system
from fusion_bench.evaluation.ranking.plain_systems import plain_systems
from fusion_bench.evaluation.ranking.system_ranking import rank_candidates
from fusion_bench.experiment.crag_settings import CragRule
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset

#: Score spaces in which a score means the same for every query.
ABSOLUTE = ("unit", "logit", "log_prob")


@dataclass(frozen=True, eq=False)
class ListEvidence:
    """The best score of Q lists of one kind, and whether they have a relevant document.

    Attributes:
        name: Name of the system, or of the rerank list.
        kind: ``system`` = its final lists; ``list`` = the rerank list in its own order.
        reranker: The rerank list whose scores count.
        scores: Shape (Q,): the best score in the top of the list, on the unit scale; NaN = none.
        relevant: Shape (Q,): whether a document in the top of the list is relevant.
    """

    name: str
    kind: Literal["system", "list"]
    reranker: str
    scores: FloatArray
    relevant: BoolArray


def absolute_rerankers(spaces: Mapping[str, ScoreSpace]) -> list[str]:
    """The rerank lists whose scores mean the same for every query."""
    return [name for name, space in spaces.items() if space in ABSOLUTE]


def require_absolute(dataset: str, spaces: Mapping[str, ScoreSpace]) -> list[str]:
    """:func:`absolute_rerankers`, at least one.

    Raises:
        ConfigError: There is none.
    """
    names = absolute_rerankers(spaces)
    if not names:
        given = ", ".join(f"{name!r} is {space}" for name, space in spaces.items())
        raise ConfigError(
            f"crag: {dataset} has no rerank list of score space {', '.join(ABSOLUTE)}, in which a "
            f"score means the same for every query ({given or 'it has no rerank list'}): add one, "
            "or remove 'crag'"
        )
    return names


def system_evidence(
    system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace], rule: CragRule
) -> ListEvidence | None:
    """The evidence on a system's final lists; None where a query has no list with absolute scores.

    Args:
        system: Any system. Where a policy does not rerank, the list that it could have used counts.
        runs: Aligned, Q queries.
        spaces: Score space of each rerank list.
        rule: Which documents count, and which are relevant.
    """
    parts = list(plain_systems(fit_system(system, runs, spaces), runs, spaces))
    names = [plain.blend.reranker_name or system.blend.reranker_name for _, plain, _ in parts]
    if any(name is None or spaces.get(name) not in ABSOLUTE for name in names):
        return None
    scores = np.full(len(runs.queries), np.nan)
    relevant = np.zeros(len(runs.queries), dtype=bool)
    used = [name for name in names if name is not None]
    for (index, plain, part), name in zip(parts, used, strict=True):
        ranking = rank_candidates(plain, part, spaces)
        inside = (ranking.positions >= 1) & (ranking.positions <= rule.top)
        best = _best_scores(ranking.runs, name, inside, spaces[name], rule.grade)
        scores[index], relevant[index] = best
    return ListEvidence(system.name, "system", ", ".join(sorted(set(used))), scores, relevant)


def list_evidence(
    dataset: Dataset, name: str, queries: tuple[str, ...], rule: CragRule
) -> ListEvidence:
    """The evidence on a rerank list by itself, in the order of its scores.

    Args:
        dataset: With the list.
        name: Of the rerank list.
        queries: The Q queries, in the order of the judgments.
        rule: Which documents count, and which are relevant.
    """
    runs = list_runs(dataset, name, queries)
    inside = (runs.ranks[0] >= 1) & (runs.ranks[0] <= rule.top)
    space = dataset.spaces[name]
    scores, relevant = _best_scores(runs, name, inside, space, rule.grade)
    return ListEvidence(name, "list", name, scores, relevant)


def list_runs(dataset: Dataset, name: str, queries: Sequence[str]) -> AlignedRuns:
    """A rerank list as the only source, and as the only rerank list.

    Args:
        dataset: With the list.
        name: Of the rerank list.
        queries: The queries to keep, in the order of the judgments.
    """
    run, kept = dataset.rerankers[name], set(queries)
    runs = align(dataset.qrels, [run], rerankers=[run], queries=dataset.queries)
    return runs.subset(np.array([query in kept for query in runs.queries]))


def _best_scores(
    view: AlignedRuns, reranker: str, inside: BoolArray, space: ScoreSpace, grade: int
) -> tuple[FloatArray, BoolArray]:
    """(Q,) best scores, NaN = nothing scored, and (Q,) whether anything inside is relevant."""
    unit = on_unit_scale(view, view.rerankers.index(reranker), inside, space)
    best = np.full(len(view.queries), -np.inf)
    np.fmax.at(best, view.query_index[inside], unit[inside])
    good = view.query_index[inside & (view.grades >= grade)]
    relevant = np.bincount(good, minlength=len(view.queries)) > 0
    return np.where(np.isinf(best), np.nan, best), relevant
