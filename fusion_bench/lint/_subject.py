"""What a rule looks at: a plain system, and what the ``dataset.yaml`` says of its lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from fusion_bench.blend import RetrievalBlend
from fusion_bench.config.query_classes import BY_TYPE, ClassKey
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray, IntArray, sum_terms
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import ScoreSpace
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.fuse import RankTerm, RankTermFusion, best_ranks
from fusion_bench.policies import Policy


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
        policy: What picks a variant of it for each query; None = nothing does.
    """

    system: System
    whole: System
    query_class: str | None = None
    dataset: DatasetFacts | None = None
    engine: str | None = None
    path: tuple[str, ...] = ()
    policy: Policy | None = None

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
