"""Ranks and scores on which the real system shows what a finding claims."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fusion_bench.blend import RerankBlend
from fusion_bench.blend.none import NoBlend
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.data.rows.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.data.switches import Switch
from fusion_bench.evaluation.ranking.query_rankings import rank_queries
from fusion_bench.experiment.system import System
from fusion_bench.lint._subject import DatasetFacts, Subject

#: Document → rank and score in one list.
RankedList: TypeAlias = Mapping[str, tuple[int, float]]
#: A query that every list answers, so that it fits the judgments; no claim is about it.
PADDING = "padding"
#: The query of the claim.
QUERY = "witness"
#: Raw scores further out change a sigmoid no more.
GREATEST_LOGIT = 40.0
#: Digits to which a claimed score and the real one agree.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Witness:
    """One query with a few documents, and what the real system does with it.

    Attributes:
        system: The system that is run; of the fusion alone where the blend is not concerned.
        claim: What it shows, in a sentence.
        lists: Source → document → rank and score; a source may lack the query.
        rerank: Document → raw rerank score.
        query_class: Type or intent of the query, as the system asks for.
        above: Pairs of documents; the first ranks above the second.
        scores: Document → its final score.
        dropped: Documents that are not returned.
        same_as: Another system that gives the same list; None = none is claimed.
        dataset: Roles of the sources, and score spaces.
        off: Sources that are switched off for the query.
    """

    system: System
    claim: str
    lists: Mapping[str, RankedList]
    rerank: Mapping[str, float] = field(default_factory=dict)
    query_class: str | None = None
    above: tuple[tuple[str, str], ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    same_as: System | None = None
    dataset: DatasetFacts | None = None
    off: frozenset[str] = frozenset()

    @property
    def documents(self) -> tuple[str, ...]:
        """Every document, in order of first appearance."""
        return tuple(
            dict.fromkeys(document for ranked in self.lists.values() for document in ranked)
        )

    @property
    def spaces(self) -> dict[str, ScoreSpace]:
        """Score space of the rerank list."""
        known = {} if self.dataset is None else self.dataset.spaces
        return {name: known.get(name, "unit") for name in self.system.reranker_names}

    def align(self) -> AlignedRuns:
        """The lists as the evaluation gets them."""
        return align(
            Qrels.from_dict({QUERY: dict.fromkeys(self.documents, 1), PADDING: {PADDING: 1}}),
            [self._make_run(name) for name in self.system.runs],
            rerankers=[self._make_reranker(name) for name in sorted(self.spaces)],
            queries={QUERY: Query(QUERY, type=self.query_class, intent=self.query_class)},
        )

    def _make_run(self, name: str) -> Run:
        ranked = {(QUERY, document): pair for document, pair in self.lists.get(name, {}).items()}
        rows = {**ranked, (PADDING, PADDING): (1, 1.0)}
        roles = {} if self.dataset is None else self.dataset.roles
        run = Run.from_rows(
            name,
            [query for query, _ in rows],
            [document for _, document in rows],
            [score for _, score in rows.values()],
            ranks=[rank for rank, _ in rows.values()],
            roles=roles.get(name, frozenset()),
            read_options=ReadOptions(rank_from="column"),
        )
        return run.switched(Switch(frozenset({PADDING}))) if name in self.off else run

    def _make_reranker(self, name: str) -> Run:
        rows = {QUERY: dict(self.rerank), PADDING: {PADDING: 0.0}}
        return Run.from_dict(name, {query: scores for query, scores in rows.items() if scores})


@dataclass(frozen=True)
class Outcome:
    """What the real system made of a witness: document → rank and score; dropped ones lack."""

    ranks: Mapping[str, int]
    scores: Mapping[str, float]


def reproduce(witness: Witness) -> tuple[Outcome, tuple[str, ...]]:
    """Run the real system on a witness.

    Returns:
        Its list, and the claims that do not hold; these are faults of the rule.
    """
    runs = witness.align()
    outcome = _run_system(witness.system, runs, witness.spaces)
    failed = list(_find_failures(witness, outcome))
    if witness.same_as is not None:
        other = _run_system(witness.same_as, runs, witness.spaces)
        if dict(other.ranks) != dict(outcome.ranks):
            failed.append("the other system gives another list")
    return outcome, tuple(failed)


def _run_system(system: System, runs: AlignedRuns, spaces: Mapping[str, ScoreSpace]) -> Outcome:
    ranks: dict[str, int] = {}
    scores: dict[str, float] = {}
    for _, ranking in rank_queries(system, runs, spaces):
        view = ranking.runs
        for n, place in enumerate(ranking.positions.tolist()):
            document = view.vocabulary[view.documents[n]]
            if place and view.queries[view.query_index[n]] == QUERY:
                ranks[document], scores[document] = place, float(ranking.scores[n])
    return Outcome(dict(sorted(ranks.items(), key=lambda item: item[1])), scores)


def _find_failures(witness: Witness, outcome: Outcome) -> Iterator[str]:
    ranks, scores = outcome.ranks, outcome.scores
    for first, second in witness.above:
        if not ranks.get(first, math.inf) < ranks.get(second, math.inf):
            yield f"{first} is not above {second}"
    for document, score in witness.scores.items():
        if not abs(scores.get(document, math.nan) - score) <= TOLERANCE:
            yield f"{document} does not score {score:g}"
    for document in witness.dropped:
        if document in ranks:
            yield f"{document} is not dropped"


def without_blend(system: System) -> System:
    """The fusion alone: no blend, no threshold, no cut of the final list."""
    changed = {"blend": NoBlend(), "min_relevance": None, "top_k": None}
    return system.model_copy(update=changed)


def without_cuts(system: System) -> System:
    """The fusion and the blend, without a threshold or cut of the final list."""
    blend = system.blend
    if isinstance(blend, RerankBlend):
        blend = blend.model_copy(update={"min_score": None})
    return system.model_copy(update={"blend": blend, "min_relevance": None, "top_k": None})


def rank_lists(ranks: Mapping[str, Mapping[str, int]]) -> dict[str, RankedList]:
    """Lists of a witness from document → source → rank; the scores fall with the rank."""
    sources = dict.fromkeys(source for placed in ranks.values() for source in placed)
    return {
        source: {
            document: (placed[source], 1 / placed[source])
            for document, placed in sorted(
                ranks.items(), key=lambda item: item[1].get(source, math.inf)
            )
            if source in placed
        }
        for source in sources
    }


def same_lists(sources: Sequence[str], ranks: Sequence[int]) -> dict[str, RankedList]:
    """Every source returns the same documents d1, d2, … at these ranks."""
    width = len(str(len(ranks)))
    placed = {f"d{i:0{width}}": (rank, 1 / rank) for i, rank in enumerate(ranks, 1)}
    return dict.fromkeys(sources, placed)


def order_fused(subject: Subject, lists: Mapping[str, RankedList]) -> list[str]:
    """The documents of these lists as the real fusion orders them."""
    witness = Witness(without_blend(subject.system), "", lists, dataset=subject.dataset)
    outcome, _ = reproduce(witness)
    return list(outcome.ranks)


def to_raw_score(unit: float, space: ScoreSpace) -> float:
    """A raw score of the space that lies at ``unit`` of the unit scale.

    The spaces ``unbounded`` and ``order`` depend on the other scores too; they get it as it is.
    """
    if space == "logit":
        if not 0 < unit < 1:
            return GREATEST_LOGIT if unit >= 1 else -GREATEST_LOGIT
        return math.log(unit / (1 - unit))
    if space == "log_prob":
        return math.log(max(unit, 1e-300))
    return unit
