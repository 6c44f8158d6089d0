"""Where a system loses relevant documents: the stage, the source, the kind of failure.

A failure belongs to one relevant document of one query. :data:`DEFINITIONS` says what each kind is;
dilution and burial are those that RRF v2 and its position-aware blend were made against (ADR-005).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, tie_group_starts
from fusion_bench.evaluation.details.relevant_ranks import RelevantDocuments, take_relevant
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.ranking.plain_systems import fit_system, plain_systems
from fusion_bench.ranking.system_ranking import fused_list, ranked_lists

FailureKind: TypeAlias = Literal["dilution", "burial", "miss", "inversion"]
KINDS: Final[tuple[FailureKind, ...]] = get_args(FailureKind)

#: The top of the final list: a burial falls out of it, an inversion lies within it.
TOP: Final = 10
#: The top of the fused list, which a reranker should not bury.
FUSED_TOP: Final = 3
#: The rank of a document that is dropped: below every other one.
LAST: Final = np.iinfo(np.int32).max

DEFINITIONS: Final[dict[FailureKind, str]] = {
    "dilution": "relevant and first in a list of role question, but below another document in the "
    "fused list",
    "burial": f"relevant and in the fused top {FUSED_TOP}, but the blend puts it below rank {TOP} "
    "or drops it",
    "miss": "relevant, but no list that the system reads returned it",
    "inversion": f"relevant and in the final top {TOP}, below a document that is judged not "
    "relevant",
}


@dataclass(frozen=True, eq=False)
class StageRanks:
    """Where one system has each of the N candidates of aligned runs, stage by stage.

    Attributes:
        is_retrieved: Shape (N,): whether a list that the system reads returned it.
        is_question_first: Shape (N,): whether it is first in a list of role question.
        fused: Shape (N,): 1-based fused rank; 0 = not in the fused list.
        fused_tie_starts: Shape (N,): fused rank of the first document that it ties with.
        final: Shape (N,): 1-based final rank before ``top_k`` cuts; 0 = dropped.
        final_tie_starts: Shape (N,): final rank of the first document that it ties with.
        returned: Shape (N,): 1-based final rank; 0 = not returned.
        has_question: Shape (Q,): whether the system reads a list of role question.
        is_reranked: Shape (Q,): whether a reranker orders the query.
        inner: The same of each stage of the system that has a reranker.
    """

    is_retrieved: BoolArray
    is_question_first: BoolArray
    fused: IntArray
    fused_tie_starts: IntArray
    final: IntArray
    final_tie_starts: IntArray
    returned: IntArray
    has_question: BoolArray
    is_reranked: BoolArray
    inner: tuple[StageRanks, ...] = ()

    @property
    def has_reranker(self) -> bool:
        """Whether a reranker orders any query, here or in a stage."""
        return bool(self.is_reranked.any()) or any(stage.has_reranker for stage in self.inner)


@dataclass(frozen=True, eq=False)
class Failures:
    """One kind of failure of one system, for each of M relevant documents.

    Attributes:
        is_exposed: Shape (M,): whether the document could fail so: it meets the first half of the
            definition.
        is_failed: Shape (M,): whether it does.
        is_tied: Shape (M,): whether another order of tied documents would undo the failure.
        relevant_above: Shape (M,): relevant documents above it in the list where it fails; 0 where
            it does not fail.
        not_relevant_above: Shape (M,): likewise those that are judged not relevant.
        unjudged_above: Shape (M,): likewise those that nobody judged.
    """

    is_exposed: BoolArray
    is_failed: BoolArray
    is_tied: BoolArray
    relevant_above: IntArray
    not_relevant_above: IntArray
    unjudged_above: IntArray


def find_failures(
    runs: AlignedRuns, relevant: RelevantDocuments, stages: StageRanks, binary_relevance: int
) -> dict[FailureKind, Failures]:
    """Which relevant documents fail, by kind.

    An unjudged document is neither relevant nor judged not relevant: it can displace and bury a
    document, and it makes no inversion.

    Args:
        runs: The N candidates.
        relevant: The M relevant documents.
        stages: Where the system has the candidates.
        binary_relevance: The grade from which a document is relevant.
    """
    counter = _AboveCounter(runs, relevant, binary_relevance)
    missed, nothing = ~take_relevant(stages.is_retrieved, relevant), np.zeros_like(relevant.rows)
    exposed = take_relevant(stages.is_question_first, relevant)
    # Only what is first in no list of role question displaces: two such lists may disagree.
    displacing = ~stages.is_question_first
    returned = take_relevant(stages.returned, relevant)
    is_shown = (returned >= 1) & (returned <= TOP)
    return {
        "dilution": _find_displaced(
            *(counter, relevant, stages.fused, stages.fused_tie_starts, exposed, displacing)
        ),
        "burial": _find_burials(counter, relevant, stages),
        "miss": Failures(
            np.ones_like(missed), missed, np.zeros_like(missed), nothing, nothing, nothing
        ),
        "inversion": _find_displaced(
            *(counter, relevant, stages.returned, stages.final_tie_starts, is_shown),
            counter.is_not_relevant,
        ),
    }


def _find_displaced(
    counter: _AboveCounter,
    relevant: RelevantDocuments,
    ranks: IntArray,
    tie_starts: IntArray,
    exposed: BoolArray,
    displacing: BoolArray,
) -> Failures:
    """The exposed documents that rank behind one of the displacing candidates."""
    rank = take_relevant(ranks, relevant)
    rank = np.where(rank == 0, LAST, rank)
    failed = exposed & (counter.count(ranks, displacing, rank) > 0)
    ties = take_relevant(tie_starts, relevant)
    tied = failed & (counter.count(ranks, displacing, ties) == 0)
    return counter.make_failures(exposed, failed, tied, ranks, rank)


def _find_burials(
    counter: _AboveCounter, relevant: RelevantDocuments, stages: StageRanks
) -> Failures:
    """A document that the blend drops stands below every other one.

    With a reranker in a stage, a document is buried where any of the blends buries it.
    """
    fused, final = take_relevant(stages.fused, relevant), take_relevant(stages.final, relevant)
    exposed = (fused >= 1) & (fused <= FUSED_TOP) & stages.is_reranked[relevant.query]
    failed = exposed & ((final == 0) | (final > TOP))
    tied = failed & (final > 0) & (take_relevant(stages.final_tie_starts, relevant) <= TOP)
    rank = np.where(final == 0, LAST, final)
    burials = counter.make_failures(exposed, failed, tied, stages.final, rank)
    for inner in stages.inner:
        burials = _join_failures(burials, _find_burials(counter, relevant, inner))
    return burials


def _join_failures(first: Failures, second: Failures) -> Failures:
    """What fails in either list; what stands above it is that of the first one where it fails."""
    lasting = (first.is_failed & ~first.is_tied) | (second.is_failed & ~second.is_tied)
    failed = first.is_failed | second.is_failed
    names = ("relevant_above", "not_relevant_above", "unjudged_above")
    above = (
        np.where(first.is_failed, getattr(first, name), getattr(second, name)) for name in names
    )
    return Failures(first.is_exposed | second.is_exposed, failed, failed & ~lasting, *above)


class _AboveCounter:
    """Counts documents above relevant ones, by what the judgments say of them.

    Attributes:
        is_relevant: Shape (N,).
        is_not_relevant: Shape (N,): judged, and below the grade of a relevant document.
        is_unjudged: Shape (N,).
    """

    def __init__(
        self, runs: AlignedRuns, relevant: RelevantDocuments, binary_relevance: int
    ) -> None:
        self.is_relevant = runs.judged & (runs.grades >= binary_relevance)
        self.is_not_relevant = runs.judged & ~self.is_relevant
        self.is_unjudged = ~runs.judged
        self._query, self._relevant = runs.query_index, relevant

    def count(self, ranks: IntArray, is_counted: BoolArray, below: IntArray) -> IntArray:
        """(M,): how many candidates of the document's query rank above a rank.

        Args:
            ranks: Shape (N,): 1-based; 0 = not in the list.
            is_counted: Shape (N,): the candidates that count.
            below: Shape (M,): the rank.
        """
        rows = np.flatnonzero(is_counted & (ranks > 0))
        size = np.int64(1) << 32
        keys = np.sort(self._query[rows] * size + ranks[rows])
        first = self._relevant.query * size
        above = np.searchsorted(keys, first + below) - np.searchsorted(keys, first)
        return np.asarray(above, dtype=np.int64)

    def make_failures(
        self,
        exposed: BoolArray,
        failed: BoolArray,
        tied: BoolArray,
        ranks: IntArray,
        below: IntArray,
    ) -> Failures:
        """Failures with what stands above each rank ``below``, (M,), in the list of ``ranks``."""
        masks = (self.is_relevant, self.is_not_relevant, self.is_unjudged)
        above = (np.where(failed, self.count(ranks, mask, below), 0) for mask in masks)
        return Failures(exposed, failed, tied, *above)


@dataclass(frozen=True, eq=False)
class DiagnosedSystem:
    """The failures of one system, and where it has the M relevant documents.

    Attributes:
        name: Its name.
        failures: By kind.
        not_applicable: Why a kind cannot occur, by kind.
        fused: Shape (M,): fused rank; :data:`LAST` = not in the fused list.
        final: Shape (M,): final rank before ``top_k`` cuts; :data:`LAST` = dropped.
        returned: Shape (M,): final rank; :data:`LAST` = not returned.
        has_question: Shape (Q,): whether the system reads a list of role question.
    """

    name: str
    failures: Mapping[FailureKind, Failures]
    not_applicable: Mapping[FailureKind, str]
    fused: IntArray
    final: IntArray
    returned: IntArray
    has_question: BoolArray

    @classmethod
    def from_stages(
        cls,
        name: str,
        stages: StageRanks,
        relevant: RelevantDocuments,
        failures: Mapping[FailureKind, Failures],
        not_applicable: Mapping[FailureKind, str],
    ) -> DiagnosedSystem:
        """Keep the ranks of the relevant documents only."""
        fused, final, returned = (
            np.where(ranks == 0, LAST, ranks)
            for stage in (stages.fused, stages.final, stages.returned)
            for ranks in [take_relevant(stage, relevant)]
        )
        return cls(name, failures, not_applicable, fused, final, returned, stages.has_question)

    def comparable_queries(self, kind: FailureKind) -> BoolArray:
        """(Q,): the queries on which failures of a kind can be counted.

        A system without a reranker buries nothing: it counts 0.
        """
        if kind == "dilution":
            return self.has_question
        is_known = kind == "burial" or kind not in self.not_applicable
        return np.full(len(self.has_question), is_known)


@dataclass(frozen=True, eq=False)
class Scope:
    """What is the same for every system of a collection.

    Attributes:
        queries: Query ids, (Q,).
        groups: Shape (Q,): codes of the groups.
        relevant: The M relevant documents.
        alpha: 1 − coverage of the intervals.
        top: The number of failures to list.
    """

    queries: tuple[str, ...]
    groups: IntArray
    relevant: RelevantDocuments
    alpha: float
    top: int

    def count_by_query(self, is_counted: BoolArray) -> FloatArray:
        """(Q,): how many of the relevant documents count, for each query."""
        counts = np.bincount(self.relevant.query[is_counted], minlength=len(self.queries))
        return counts.astype(np.float64)


#: The role of the lists that were asked with the user's question.
QUESTION = "question"


def rank_stages(system: System, runs: AlignedRuns, pool: AlignedRuns | None = None) -> StageRanks:
    """Rank the candidates of every query, stage by stage.

    Args:
        system: The system.
        runs: All sources of the dataset.
        pool: The N candidates of Q queries that it returns some of, if it returns documents while
            the sources hold chunks; None = those of the sources.

    Raises:
        AlignmentError: The system does not fit these lists.
        ConfigError: As above.
    """
    fitted = fit_system(system, runs)
    places = runs if pool is None else pool
    stages = _empty_stages(len(places.documents), len(runs.queries))
    for index, plain, part in plain_systems(fitted, runs):
        view, (final, final_tie_starts) = ranked_lists(plain, part)
        fused = fused_list(view, plain.fusion)
        rows = places.find_rows(index[view.query_index], view.documents)
        question = [s for s, roles in enumerate(view.roles) if QUESTION in roles]
        stages.is_retrieved[rows] = True
        stages.is_question_first[rows] = (view.ranks[question] == 1).any(axis=0)
        stages.fused[rows] = fused.positions
        stages.fused_tie_starts[rows] = tie_group_starts(
            fused.positions, fused.sort_scores, view.offsets
        )
        stages.final[rows] = final
        stages.final_tie_starts[rows] = final_tie_starts
        is_cut = False if plain.top_k is None else final > plain.top_k
        stages.returned[rows] = np.where(is_cut, 0, final)
        stages.has_question[index] = bool(question)
        blend = plain.blend
        reranked = np.full(len(view.queries), blend.reranker_name is not None)
        if isinstance(blend, RerankBlend):
            skipped = view.query_index[blend.is_skipped(view, fused)]
            reranked[skipped] = False
        stages.is_reranked[index] = reranked
    if places is not runs:
        return stages  # the lists of its stages hold chunks
    inner = [stage for stage in (fitted.stages or {}).values() if stage.reranker_names]
    return replace(stages, inner=tuple(rank_stages(stage, runs) for stage in inner))


def _empty_stages(candidates: int, queries: int) -> StageRanks:
    """A system that retrieves nothing, to be filled."""
    masks = [np.zeros(size, dtype=bool) for size in (candidates, candidates, queries, queries)]
    ranks = [np.zeros(candidates, dtype=np.int64) for _ in range(5)]
    fused, fused_ties, final, final_ties, returned = ranks
    return StageRanks(
        is_retrieved=masks[0],
        is_question_first=masks[1],
        fused=fused,
        fused_tie_starts=fused_ties,
        final=final,
        final_tie_starts=final_ties,
        returned=returned,
        has_question=masks[2],
        is_reranked=masks[3],
    )
