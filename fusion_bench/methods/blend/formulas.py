"""Blends of a fused list with a reranker's scores: candidates, score spaces, weights by rank."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fusion_bench.config.models import ByRank, Rank
from fusion_bench.config.parameters import Parameter, Params, choice, real, table
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.ordering import (
    BoolArray,
    FloatArray,
    IntArray,
    positions,
    starts_equal_scores,
    sum_terms,
)
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import AlignmentError, ConfigError, UnknownNameError
from fusion_bench.methods.normalize._base import sigmoid

#: Documents of a lower tier rank above all those of a higher one; DROPPED ones are not returned.
BLENDED, UNSCORED, TAIL, DROPPED = 0, 1, 2, -1


class Fused(NamedTuple):
    """What a blend starts from.

    Attributes:
        scores: Shape (N,): the fusion's displayed scores, which a blend reads.
        positions: Shape (N,): 1-based fused rank.
        max_possible: Shape (Q,): what no fused score can exceed.
        sort_scores: Shape (N,): the scores that decided the fused order, before any clamp.
    """

    scores: FloatArray
    positions: IntArray
    max_possible: FloatArray
    sort_scores: FloatArray


class Blended(NamedTuple):
    """What a blend ends with.

    Attributes:
        scores: Shape (N,): final scores; fused ones outside tier 0.
        tiers: Shape (N,): 0 blended, 1 without a rerank score, 2 beyond the depth, -1 dropped.
        sort_scores: Shape (N,): what decides the order inside a tier: the final scores, but fused
            ones before any clamp.
    """

    scores: FloatArray
    tiers: NDArray[np.int8]
    sort_scores: FloatArray


class BlendTerms(NamedTuple):
    """Final score = retrieval_weight · retrieval + rerank_weight · rerank score; each (N,)."""

    retrieval: FloatArray
    retrieval_weight: FloatArray
    rerank_weight: FloatArray


@dataclass(frozen=True, eq=False)
class BlendWeights:
    """A blend in the form that the batch engine evaluates: a·retrieval + b·rerank, by fused rank.

    Attributes:
        retrieval: Name of the retrieval term (see ``RetrievalBlend``); None = there is none.
        retrieval_weights: (D,): a at each fused rank from 1; 0 where there is no retrieval term.
        rerank_weights: (D,): b.
    """

    retrieval: str | None
    retrieval_weights: FloatArray
    rerank_weights: FloatArray


class Blend(Method):
    """Turns the fused list and cached rerank scores into the final list.

    A blend needs ``blend`` alone. One that reads a rerank list derives from ``RerankBlend`` and
    needs ``combine``; one that weighs a rerank score against a retrieval term derives from
    ``RetrievalBlend`` and needs ``weights_at``::

        @blends.register
        class Half(RetrievalBlend):
            \"\"\"``half``: (retrieval + rerank) / 2.\"\"\"

            method: str = "half"

            def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
                return np.full(len(ranks), 0.5), np.full(len(ranks), 0.5)
    """

    @property
    def reranker_name(self) -> str | None:
        """The rerank list it reads, if any."""
        return None

    @abstractmethod
    def blend(self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]) -> Blended:
        """Final scores.

        Args:
            runs: The sources that take part, with the rerank lists.
            fused: The fused list.
            spaces: What the scores of each rerank list mean.

        Raises:
            UnknownNameError: The rerank list is not there.
            ConfigError: Its score space is not declared.
            AlignmentError: A candidate without a rerank score under ``missing: error``.
        """

    def engine_form(self, depth: int) -> BlendWeights | None:  # noqa: ARG002 - of some
        """The final scores in a form that the batch engine evaluates; None = there is no such form.

        Args:
            depth: The number of fused ranks to state weights for.
        """
        return None

    def space(self) -> tuple[Parameter, ...]:
        """What can be tuned, with paths relative to the blend.

        ``depth``, which costs money, and ``min_score``, which drops documents, are tuned only
        where the experiment lists them.
        """
        return ()


blends: MethodRegistry[Blend] = MethodRegistry(
    *("blend", "fusion_bench.methods.blend", "fusion_bench.blends", Blend),
    adapter="fusion_bench.methods.own_functions:FunctionBlend",
)
blends.first = ("none", "replace", "linear", "position_aware")


def on_unit_scale(
    runs: AlignedRuns, reranker: int, candidates: NDArray[np.bool_], space: ScoreSpace
) -> FloatArray:
    """Rerank scores of the candidates, in [0, 1].

    Args:
        runs: Aligned runs with the rerank lists.
        reranker: Row of the rerank list.
        candidates: Shape (N,): the documents inside the depth.
        space: ``unit`` = as they are; ``logit`` = sigmoid; ``log_prob`` = exp; ``unbounded`` =
            min-max over the candidates; ``order`` = the i-th of n scored candidates gets
            (n+1−i)/n.

    Returns:
        Shape (N,): NaN where there is no score or no candidate.
    """
    given = np.where(candidates, fixed_scale(runs, reranker, space), np.nan)
    return _scale_within(given, runs.rerank_ranks[reranker], runs.query_index, space)


def to_unit_scale(scores: Sequence[float], space: ScoreSpace) -> FloatArray:
    """(n,): one query's scores in [0, 1], as :func:`on_unit_scale` reads them from a list.

    Equal scores of the space ``order`` count in the order given.
    """
    raw = np.array(scores, dtype=np.float64)
    query = np.zeros(len(raw), dtype=np.int64)
    ranks = positions(raw, np.array([0, len(raw)]))
    return _scale_within(_link_scores(raw, space), ranks, query, space)


def _scale_within(
    given: FloatArray, ranks: IntArray, query_index: IntArray, space: ScoreSpace
) -> FloatArray:
    """What depends on the other scores of a query, given what :func:`fixed_scale` returns."""
    if space == "unbounded":
        return min_max_within(query_index, given)
    if space == "order":
        return _by_order(query_index, ranks, ~np.isnan(given))
    return given


@cached_by_view()
def fixed_scale(runs: AlignedRuns, reranker: int, space: ScoreSpace) -> FloatArray:
    """(N,): what does not depend on the candidates; raw scores where all of it does.

    Made once, so that a score is the same to the last bit wherever it is used.
    """
    return _link_scores(runs.rerank[reranker], space)


def _link_scores(raw: FloatArray, space: ScoreSpace) -> FloatArray:
    if space not in {"logit", "log_prob"}:
        return raw
    return sigmoid(raw) if space == "logit" else np.asarray(np.exp(raw), dtype=np.float64)


def min_max_within(query_index: IntArray, values: FloatArray) -> FloatArray:
    """Min-max of ``values``, shape (N,), over each query's values that are not NaN.

    Where all of a query's values are equal they become 1, as in a normalized list.
    """
    queries = np.max(query_index, initial=-1) + 1
    low, high = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.fmin.at(low, query_index, values)
    np.fmax.at(high, query_index, values)
    low, high = low[query_index], high[query_index]
    out = np.where(np.isnan(values), np.nan, 1.0)
    halves = values / 2 - low / 2, high / 2 - low / 2  # differences themselves may overflow
    np.divide(*halves, out=out, where=~np.isnan(values) & (high > low))
    return out


def level_equal_scores(scores: FloatArray, lists: IntArray) -> FloatArray:
    """(n,): scores in fused order; the first of equal ones stands for all of them.

    Scores are equal if their keys are. Min-max would stretch what they differ by, and order by it.

    Args:
        scores: Shape (n,).
        lists: Shape (n,): the list of each score.
    """
    is_first = starts_equal_scores(scores, lists)
    return np.asarray(scores[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]])


def _by_order(query_index: IntArray, ranks: IntArray, scored: NDArray[np.bool_]) -> FloatArray:
    """(n+1−i)/n for the i-th of the n scored candidates of each query, by the list's order."""
    out = np.full(len(ranks), np.nan)
    rows = np.flatnonzero(scored)
    query = query_index[rows]
    rows = rows[np.lexsort((ranks[rows], query))]
    place = np.arange(len(rows)) - np.searchsorted(query, query) + 1
    size = np.bincount(query)[query]
    out[rows] = (size + 1 - place) / size
    return out


class RerankBlend(Blend):
    """A blend that reads a rerank list.

    Attributes:
        reranker: Name of the rerank list.
        depth: Number of top fused documents that are candidates for reranking.
        missing: A candidate without a rerank score: ``error``, ``zero`` = rerank score 0,
            ``below`` = keeps its fused order under every scored candidate.
        tail: Documents beyond ``depth``: ``keep`` = fused order, below; ``drop``.
        min_score: Drop candidates whose rerank score, on the unit scale, is below this.
        always_rerank: False = do not rerank a query with at most ``skip_limit`` fused documents.
        skip_limit: See ``always_rerank``; by default a usual result limit (CONV-07-05).
    """

    reranker: str
    depth: Rank = 50
    missing: Literal["error", "zero", "below"] = "error"
    tail: Literal["keep", "drop"] = "keep"
    min_score: float | None = None
    always_rerank: bool = True
    skip_limit: Annotated[int, Field(ge=0)] = 10

    @property
    def reranker_name(self) -> str | None:
        """The rerank list it reads."""
        return self.reranker

    @abstractmethod
    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: BoolArray
    ) -> FloatArray:
        """(N,): the final score of every candidate; other values are not read.

        Args:
            runs: The sources that take part.
            fused: The fused list.
            rerank: Shape (N,): rerank scores on the unit scale; NaN = none.
            candidates: Shape (N,): the documents to blend.
        """

    def blend_terms(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - sums of two terms read it
        fused: Fused,  # noqa: ARG002 - as above
        candidates: BoolArray,  # noqa: ARG002 - as above
    ) -> BlendTerms | None:
        """The two terms whose sum :meth:`combine` is; None = it is no such sum."""
        return None

    def score_candidates(
        self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]
    ) -> tuple[BoolArray, FloatArray, BoolArray]:
        """Candidates for reranking, their scores on the unit scale, those without one: (N,) each.

        Raises:
            UnknownNameError: The rerank list is not there.
            ConfigError: Its score space is not declared.
            AlignmentError: A candidate without a rerank score under ``missing: error``.
        """
        if self.reranker not in runs.rerankers:
            raise UnknownNameError("reranker", self.reranker, runs.rerankers)
        if self.reranker not in spaces:
            raise ConfigError(
                f"reranker {self.reranker!r} has no score_space: declare what its scores mean "
                f"({', '.join(get_args(ScoreSpace))}), with "
                f"score_spaces={{{self.reranker!r}: …}} in Python, "
                "with score_space in dataset.yaml otherwise"
            )
        candidates = self.select_candidates(runs, fused)
        row = runs.rerankers.index(self.reranker)
        unit = on_unit_scale(runs, row, candidates, spaces[self.reranker])
        unscored = candidates & np.isnan(unit)
        if unscored.any() and self.missing == "error":
            first = int(np.flatnonzero(unscored)[0])
            queries = len(np.unique(runs.query_index[unscored]))
            raise AlignmentError(
                f"reranker {self.reranker!r} has no score for document "
                f"{runs.vocabulary[runs.documents[first]]!r} of query "
                f"{runs.queries[runs.query_index[first]]!r} ({int(unscored.sum())} candidates of "
                f"{queries} queries within depth {self.depth} have none): score them, lower "
                "'depth', or set 'missing: zero' or 'missing: below'"
            )
        if self.missing == "zero":
            unit = np.where(unscored, 0.0, unit)
            unscored = np.zeros_like(unscored)
        return candidates, unit, unscored

    def select_candidates(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        """(N,): the documents that a rerank score is needed of."""
        inside = (fused.positions >= 1) & (fused.positions <= self.depth)
        return np.asarray(inside & ~self.is_skipped(runs, fused))

    def blend(self, runs: AlignedRuns, fused: Fused, spaces: Mapping[str, ScoreSpace]) -> Blended:
        """Blend the candidates, keep or drop the rest; see :meth:`Blend.blend`."""
        candidates, unit, unscored = self.score_candidates(runs, fused, spaces)
        blended = candidates & ~unscored
        combined = self.combine(runs, fused, unit, candidates)
        final = np.where(blended, combined, fused.scores)
        tiers = np.full(len(final), TAIL if self.tail == "keep" else DROPPED, dtype=np.int8)
        tiers[self.is_skipped(runs, fused)] = TAIL
        tiers[unscored], tiers[blended] = UNSCORED, BLENDED
        if self.min_score is not None:
            with np.errstate(invalid="ignore"):
                tiers[blended & (unit < self.min_score)] = DROPPED
        tiers[fused.positions == 0] = DROPPED
        return Blended(final, tiers, np.where(blended, combined, fused.sort_scores))

    def is_skipped(self, runs: AlignedRuns, fused: Fused) -> BoolArray:
        """(N,): documents of queries with too few of them to rerank."""
        if self.always_rerank:
            return np.zeros(len(fused.positions), dtype=bool)
        sizes = np.bincount(
            runs.query_index, weights=fused.positions > 0, minlength=len(runs.queries)
        )
        return np.asarray((sizes <= self.skip_limit)[runs.query_index])


Retrieval: TypeAlias = Literal["fused", "fused_max_possible", "fused_min_max", "reciprocal_rank"]


class RetrievalBlend(RerankBlend):
    """A blend that weighs the rerank score against a retrieval term.

    Attributes:
        retrieval: ``fused`` = the fused score (a raw RRF score is at most about 0.12, so that it
            hardly weighs); ``fused_max_possible`` = divided by the greatest score possible;
            ``fused_min_max`` = min-max over the ``depth`` candidates, of which equal ones have one
            score; ``reciprocal_rank`` = 1 / fused rank, as in https://github.com/tobi/qmd.
    """

    retrieval: Retrieval = "fused"

    def space(self) -> tuple[Parameter, ...]:
        """The definition of the retrieval term, which decides what every weight means."""
        return (choice("retrieval", *get_args(Retrieval)),)

    @abstractmethod
    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: the weights of the retrieval term and of the rerank score at fused ranks."""

    def engine_form(self, depth: int) -> BlendWeights:
        """Both weights at every rank."""
        return BlendWeights(self.retrieval, *self.weights_at(np.arange(1, depth + 1)))

    def blend_terms(self, runs: AlignedRuns, fused: Fused, candidates: BoolArray) -> BlendTerms:
        """The retrieval term, and both weights."""
        term = self.retrieval_term(runs, fused, candidates)
        return BlendTerms(term, *self.weights_at(fused.positions))

    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: BoolArray
    ) -> FloatArray:
        """(N,): the weighted mean of the retrieval term and the rerank score."""
        retrieval, weight, rerank_weight = self.blend_terms(runs, fused, candidates)
        return sum_terms(np.stack([weight * retrieval, rerank_weight * rerank]))

    def retrieval_term(self, runs: AlignedRuns, fused: Fused, candidates: BoolArray) -> FloatArray:
        """(N,): the retrieval term of every candidate.

        Raises:
            AlignmentError: ``fused_max_possible`` where the greatest possible score is not
                above 0.
        """
        if self.retrieval == "reciprocal_rank":
            return 1 / np.maximum(fused.positions, 1)
        if self.retrieval == "fused_min_max":
            scores = np.where(candidates, fused.scores, np.nan)
            rows = np.flatnonzero(candidates)
            rows = rows[np.lexsort((fused.positions[rows], runs.query_index[rows]))]
            scores[rows] = level_equal_scores(scores[rows], runs.query_index[rows])
            return min_max_within(runs.query_index, scores)
        if self.retrieval == "fused_max_possible":
            top = fused.max_possible[runs.query_index]
            unusable = top[candidates][~((top[candidates] > 0) & (top[candidates] < np.inf))]
            if len(unusable):
                raise AlignmentError(
                    "retrieval: fused_max_possible divides by the greatest possible fused score, "
                    f"which is {unusable[0]:g} for a query: use fused_min_max"
                )
            return fused.scores / np.where(candidates, top, 1.0)
        return fused.scores


@blends.register
class NoBlend(Blend):
    """``none``: the fused list as it is.

    Source: the fused order, as CONV-07-05 has it where no reranker is set.
    """

    formula = "fused"
    source = "the fused order"

    method: str = "none"

    def blend(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,
        spaces: Mapping[str, ScoreSpace],  # noqa: ARG002 - part of the contract
    ) -> Blended:
        """Fused scores, one tier."""
        tiers = np.where(fused.positions > 0, BLENDED, DROPPED).astype(np.int8)
        return Blended(fused.scores, tiers, fused.sort_scores)


@blends.register
class Replace(RerankBlend):
    """``replace``: the rerank score; equals ``linear`` with β = 1."""

    formula = "rerank"
    source = "the reranker's order"

    method: str = "replace"

    def combine(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,  # noqa: ARG002 - part of the contract
        rerank: FloatArray,
        candidates: BoolArray,  # noqa: ARG002 - part of the contract
    ) -> FloatArray:
        """(N,): the rerank scores."""
        return rerank

    def engine_form(self, depth: int) -> BlendWeights:
        """No retrieval term."""
        return BlendWeights(None, np.zeros(depth), np.ones(depth))

    def blend_terms(
        self,
        runs: AlignedRuns,  # noqa: ARG002 - part of the contract
        fused: Fused,
        candidates: BoolArray,  # noqa: ARG002 - part of the contract
    ) -> BlendTerms:
        """The retrieval term weighs nothing."""
        size = len(fused.positions)
        return BlendTerms(fused.scores, np.zeros(size), np.ones(size))


@blends.register
class Linear(RetrievalBlend):
    """``linear``: β·rerank + (1 − β)·retrieval.

    Source: linear interpolation of two scores, as in nablarch's reranking design, 5.3.

    Attributes:
        beta: Weight of the rerank score.
    """

    formula = "β·rerank + (1−β)·retrieval"
    source = "linear interpolation"

    method: str = "linear"
    beta: Annotated[float, Field(ge=0, le=1)] = 1.0

    def space(self) -> tuple[Parameter, ...]:
        """β and the retrieval term."""
        return (real("beta", 0.0, 1.0), *super().space())

    def presets(self) -> tuple[Params, ...]:
        """β = 0.7, the source's other value."""
        return ({"beta": 0.7},)

    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: 1 − β and β at every rank."""
        return np.full(len(ranks), 1 - self.beta), np.full(len(ranks), self.beta)


Share = Annotated[float, Field(ge=0, le=1)]

#: Ranks that one tier of a searched table may span.
DEEPEST_TIER = 20


@blends.register
class PositionAware(RetrievalBlend):
    """``position_aware``: w·retrieval + (1 − w)·rerank, w by fused rank.

    Source: https://github.com/tobi/qmd; ADR-005 counts its ranks from 0 (≤ 2, ≤ 9).

    Attributes:
        tiers: Fused rank up to which → w: ``{3: 0.75, 10: 0.60}``.
        rest: w beyond the last tier.
    """

    formula = "w·retrieval + (1−w)·rerank, w by fused rank"
    source = "tobi/qmd on GitHub"

    method: str = "position_aware"
    tiers: ByRank[Share] = Field(default_factory=lambda: {3: 0.75, 10: 0.60})
    rest: Share = 0.40

    def space(self) -> tuple[Parameter, ...]:
        """The share and the ranks of each tier, the share beyond them, and the retrieval term."""
        shares = table("tiers", len(self.tiers), 1.0, DEEPEST_TIER)
        return (*shares, real("rest", 0.0, 1.0), *super().space())

    def presets(self) -> tuple[Params, ...]:
        """0.85 on the first tier: the 85/15 that its source names beside 75/25."""
        return ({"tiers.1.value": 0.85},) if self.tiers else ()

    def weights_at(self, ranks: IntArray) -> tuple[FloatArray, FloatArray]:
        """(n,) each: w and 1 − w at these fused ranks."""
        limits = np.array(list(self.tiers), dtype=np.int64)
        shares = np.array([*self.tiers.values(), self.rest])
        weight = shares[np.searchsorted(limits, ranks)]
        return weight, 1 - weight
