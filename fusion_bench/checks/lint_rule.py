"""The contract of a lint rule: the system that it looks at, problems, their witnesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np

from fusion_bench.checks.records import Severity
from fusion_bench.config.models import Location
from fusion_bench.config.query_types import BY_TYPE, ClassKey
from fusion_bench.config.registry import Registry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query, ScoreSpace, Switch
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import RetrievalBlend
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import RankTerm, RankTermFusion, best_ranks
from fusion_bench.ranking.final_lists import rank_queries


@dataclass(frozen=True)
class SwitchFacts:
    """When a run is on.

    Attributes:
        condition: In one line.
        on: Queries for which it is on.
        queries: All queries.
    """

    condition: str
    on: int
    queries: int


@dataclass(frozen=True)
class DatasetFacts:
    """What a dataset says of its lists and queries; no score and no rank is read.

    Attributes:
        name: Its name.
        roles: Roles by run.
        spaces: Score space by rerank list.
        types: Types of its queries; None = not known.
        intents: Intents of its queries; None = not known.
        switches: When each run is on that is not on for all queries, by name.
    """

    name: str
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    spaces: Mapping[str, ScoreSpace] = field(default_factory=dict)
    types: frozenset[str] | None = None
    switches: Mapping[str, SwitchFacts] = field(default_factory=dict)
    intents: frozenset[str] | None = None

    def classes(self, key: ClassKey) -> frozenset[str] | None:
        """The values that the queries have in the field of a key; None = not known."""
        return self.types if key is BY_TYPE else self.intents


@dataclass(frozen=True, eq=False)
class Subject:
    """A plain system, as far as its configuration and the dataset say.

    Attributes:
        system: The system for queries of one type or intent.
        whole: The system as the experiment has it.
        query_class: The query type or intent; None where all queries are treated alike.
        dataset: What is known of the data; None = nothing.
        engine: Name of the dialect of the search engine that shall run it; None = not known.
        path: Where it stands: the system of the experiment, and ``stages``, NAME for each stage
            on the way down; empty = the system itself.
    """

    system: System
    whole: System
    query_class: str | None = None
    dataset: DatasetFacts | None = None
    engine: str | None = None
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The system of the experiment that it is, or is a stage of."""
        return self.path[0] if self.path else self.whole.name

    @property
    def is_fallback(self) -> bool:
        """Whether it is the system for queries whose type or intent is not known."""
        key = self.whole.class_key
        return key is not None and self.query_class == key.fallback

    @property
    def class_field(self) -> str:
        """The field of the query that decides: ``type`` or ``intent``."""
        key = self.whole.class_key
        return "" if key is None else key.field

    @property
    def class_title(self) -> str:
        """What the values of that field are called."""
        key = self.whole.class_key
        return "" if key is None else key.title

    @cached_property
    def weights(self) -> Mapping[str, float] | None:
        """Weight by source, of those that take part; None where the sources do not fit."""
        names, fusion = self.system.runs, self.system.fusion
        roles = [self.roles_of(name) for name in names]
        try:
            fusion.check_sources(names, roles)
            weights = fusion.source_weights(names, roles)
        except ConfigError:
            return None
        return {name: float(w) for name, w in zip(names, weights, strict=True) if w > 0}

    def roles_of(self, source: str) -> frozenset[str]:
        """Roles of a source; empty where nothing is known."""
        return frozenset() if self.dataset is None else self.dataset.roles.get(source, frozenset())

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that take part; empty where that is not known."""
        return tuple(self.weights or ())

    @property
    def lightest(self) -> str:
        """The source of least weight."""
        weights = self.weights or {}
        return min(weights, key=lambda name: weights[name])

    @property
    def heaviest(self) -> str:
        """The source of greatest weight."""
        weights = self.weights or {}
        return max(weights, key=lambda name: weights[name])

    @property
    def space(self) -> ScoreSpace:
        """Score space of the rerank list; ``unit`` where nothing is known."""
        name = self.system.blend.reranker_name
        spaces = {} if self.dataset is None else self.dataset.spaces
        return spaces.get(name or "", "unit")

    def depth_of(self, source: str) -> int | None:
        """Rank at which the configuration cuts a source; None = it does not."""
        depth = self.system.depth
        return depth.get(source) if isinstance(depth, dict) else depth

    @property
    def depth(self) -> int | None:
        """The greatest rank of any source; None = the configuration sets no limit."""
        depths = [self.depth_of(name) for name in self.sources]
        known = [depth for depth in depths if depth is not None]
        return max(known) if known and len(known) == len(depths) else None

    @property
    def rank_fusion(self) -> RankTermFusion | None:
        """The fusion, if it is a sum of terms of ranks and its weights are known."""
        fusion = self.system.fusion
        return fusion if isinstance(fusion, RankTermFusion) and self.weights else None

    @property
    def retrieval_blend(self) -> RetrievalBlend | None:
        """The blend, if it weighs a rerank score against a retrieval term."""
        blend = self.system.blend
        return blend if isinstance(blend, RetrievalBlend) else None

    @cached_property
    def terms(self) -> tuple[RankTerm, ...]:
        """The terms of :attr:`rank_fusion`."""
        fusion = self.rank_fusion
        return () if fusion is None else fusion.rank_terms(self.runs)

    @cached_property
    def runs(self) -> AlignedRuns:
        """The sources that take part, aligned on one document: what methods ask for."""
        return _align_sources(self.sources, tuple(self.roles_of(name) for name in self.sources))

    def score_at(self, ranks: Mapping[str, int]) -> float:
        """The sum of the terms for a document of these ranks; sources that lack it are left out."""
        return self.list_scores([ranks])[0]

    def list_scores(self, documents: Sequence[Mapping[str, int]]) -> list[float]:
        """The sum of the terms for each document, given by its rank in each source."""
        rows = [[ranks.get(name, 0) for ranks in documents] for name in self.sources]
        return [float(score) for score in self.scores_at(np.array(rows, dtype=np.int64))]

    def scores_at(self, ranks: IntArray) -> FloatArray:
        """(n,): the sum of the terms at (S, n) ranks, before ``normalize``; 0 = not returned."""
        values = [term.value_at(best_ranks(ranks[[*term.columns]])) for term in self.terms]
        return np.asarray(sum_terms(np.array(values)))

    def make_witness(
        self,
        claim: str,
        lists: Mapping[str, RankedList],
        rerank: Mapping[str, float] | None = None,
        *,
        system: System | None = None,
        **facts: Any,  # noqa: ANN401 - further fields of the witness
    ) -> Witness:
        """Lists on which a system shows something; by default the fusion alone."""
        shown = without_blend(self.system) if system is None else system
        return Witness(shown, claim, lists, rerank or {}, dataset=self.dataset, **facts)

    @property
    def greatest_score(self) -> float:
        """What no fused score exceeds."""
        return float(self.system.fusion.max_possible(self.runs)[0])

    @property
    def divisor(self) -> float:
        """What ``normalize`` divides the sum by."""
        fusion = self.rank_fusion
        return 1.0 if fusion is None else fusion.score_divisor(self.runs, self.terms)


@lru_cache(maxsize=64)
def _align_sources(sources: Sequence[str], roles: Sequence[frozenset[str]]) -> AlignedRuns:
    """One document that every source ranks first."""
    pairs = zip(sources, roles, strict=True)
    runs = [Run.from_rows(name, ["q"], ["d"], [1.0], roles=names) for name, names in pairs]
    return align(Qrels.from_dict({"q": {"d": 1}}), runs)


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
        rows = {QUERY: dict(self.rerank), PADDING: {PADDING: 0.0}}
        scored = {query: scores for query, scores in rows.items() if scores}
        known = {} if self.dataset is None else self.dataset.roles
        runs = []
        for name in self.system.runs:
            ranked = {
                (QUERY, document): pair for document, pair in self.lists.get(name, {}).items()
            }
            placed = {**ranked, (PADDING, PADDING): (1, 1.0)}
            run = Run.from_rows(
                name,
                [query for query, _ in placed],
                [document for _, document in placed],
                [score for _, score in placed.values()],
                ranks=[rank for rank, _ in placed.values()],
                roles=known.get(name, frozenset()),
                read_options=ReadOptions(rank_from="column"),
            )
            runs.append(run.switched(Switch(frozenset({PADDING}))) if name in self.off else run)
        return align(
            Qrels.from_dict({QUERY: dict.fromkeys(self.documents, 1), PADDING: {PADDING: 1}}),
            runs,
            rerankers=[Run.from_dict(name, scored) for name in sorted(self.spaces)],
            queries={QUERY: Query(QUERY, type=self.query_class, intent=self.query_class)},
            spaces=self.spaces,
        )


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
    outcome = _run_system(witness.system, runs)
    failed: list[str] = []
    ranks, scores = outcome.ranks, outcome.scores
    for first, second in witness.above:
        if not ranks.get(first, math.inf) < ranks.get(second, math.inf):
            failed.append(f"{first} is not above {second}")
    for document, score in witness.scores.items():
        if not abs(scores.get(document, math.nan) - score) <= TOLERANCE:
            failed.append(f"{document} does not score {score:g}")
    failed += [f"{document} is not dropped" for document in witness.dropped if document in ranks]
    if witness.same_as is not None:
        other = _run_system(witness.same_as, runs)
        if dict(other.ranks) != dict(outcome.ranks):
            failed.append("the other system gives another list")
    return outcome, tuple(failed)


def _run_system(system: System, runs: AlignedRuns) -> Outcome:
    ranks: dict[str, int] = {}
    scores: dict[str, float] = {}
    # A witness has one chunk a document, so that nothing is collapsed.
    for _, ranking in rank_queries(system.model_copy(update={"collapse": None}), runs):
        view = ranking.runs
        for n, place in enumerate(ranking.positions.tolist()):
            document = view.vocabulary[view.documents[n]]
            if place and view.queries[view.query_index[n]] == QUERY:
                ranks[document], scores[document] = place, float(ranking.scores[n])
    return Outcome(dict(sorted(ranks.items(), key=lambda item: item[1])), scores)


def without_blend(system: System) -> System:
    """The fusion alone: no blend, no threshold, no cut of the final list."""
    changed = {"blend": NoBlend(), "min_relevance": None, "top_k": None}
    return system.model_copy(update=changed)


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


#: What a ``dataset.yaml`` may add to a configuration: roles of runs, score spaces of rerank lists,
#: types of queries.
Fact: TypeAlias = Literal["roles", "score_space", "types"]


@dataclass(frozen=True)
class Problem:
    """What a rule finds in one plain system.

    Attributes:
        message: What the configuration does, with its numbers; names no system, so that systems
            of the same numbers share it.
        location: Path of the value inside the system.
        build_witness: Makes ranks and scores on which the real system shows it.
        severity: In place of the rule's.
        of_whole: It is of the whole system, whatever the query type.
    """

    message: str
    location: Location
    build_witness: Callable[[], Witness]
    severity: Severity | None = None
    of_whole: bool = False


FindProblems: TypeAlias = Callable[[Subject], Iterator[Problem]]


@dataclass(frozen=True)
class Rule:
    """Finds one thing that a configuration does or cannot do, before any data is seen.

    Attributes:
        find_problems: Yields what it finds in one plain system.
        severity: ``warning`` = results suffer, or are not what the numbers suggest; ``note`` =
            worth knowing. Only warnings change the exit code of ``fusion-bench lint``.
        facts: What it needs of the ``dataset.yaml``; without a dataset it is not checked.
    """

    find_problems: FindProblems
    severity: Severity
    facts: frozenset[Fact]


_rules: Registry[Rule] = Registry(
    "lint rule", "fusion_bench.checks.rules", "fusion_bench.lint_rules"
)


def register_rule(
    name: str, *, severity: Severity = "warning", facts: Collection[Fact] = ()
) -> Callable[[FindProblems], FindProblems]:
    """Return a decorator that makes a function known as a rule; see :class:`Rule`.

    Args:
        name: Its stable name, in kebab case; never reused for something else.
        severity: Of its problems.
        facts: What it needs of the ``dataset.yaml``.
    """

    def register(find_problems: FindProblems) -> FindProblems:
        _rules.add_plugin(name, Rule(find_problems, severity, frozenset(facts)))
        return find_problems

    return register


def load_rules() -> Mapping[str, Rule]:
    """The rules of this folder by id, in order; a search for others would take too long."""
    return _rules.load_built_in()
