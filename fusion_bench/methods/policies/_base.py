"""The contract of a per-query policy, fixed or trained: what it sees of a query, what it picks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from fusion_bench.config.models import StrictModel, Weight
from fusion_bench.config.parameters import Parameter
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, rows_within, sum_terms
from fusion_bench.errors import AlignmentError
from fusion_bench.methods.fuse import deal_folds, fusions

#: Depth of the features that take no other.
DEPTH = 10
#: Persistence of rank-biased overlap.
PERSISTENCE = 0.9


@dataclass(frozen=True, eq=False)
class QueryFeatures:
    """Features of Q queries over S sources; those of a query depend on no other query.

    None of them reads a judgment.

    Attributes:
        runs: Every source of the system, each cut at its depth.
        weights: Shape (S,): the fusion's weights; 1 where it has none.
        fuse: Returns the system's fused list without a policy: scores and 1-based positions, (N,)
            each, and the offsets of its queries, (Q+1,).
    """

    runs: AlignedRuns
    weights: FloatArray
    fuse: Callable[[], tuple[FloatArray, IntArray, IntArray]]

    @property
    def lengths(self) -> IntArray:
        """(S, Q): documents that each source returned."""
        return self.runs.lengths

    def top_scores(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q, depth): each source's scores in the order of its ranks; NaN behind its end."""
        shape = (len(self.runs.sources), len(self.runs.queries), depth)
        top: FloatArray = np.full(shape, np.nan)
        for s, ranks in enumerate(self.runs.ranks):
            rows = np.flatnonzero((ranks > 0) & (ranks <= depth))
            top[s, self.runs.query_index[rows], ranks[rows] - 1] = self.runs.scores[s, rows]
        return top

    def fused_top_scores(self, depth: int = DEPTH) -> FloatArray:
        """(Q, depth): scores of the fused list; NaN behind its end."""
        scores, positions, offsets = self.fuse()
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        rows = rows_within(positions, depth)
        top: FloatArray = np.full((len(offsets) - 1, depth), np.nan)
        top[query[rows], positions[rows] - 1] = scores[rows]
        return top

    def margins(self, window: int = DEPTH) -> FloatArray:
        """(S, Q): top score − mean of the next ``window`` ones; 0 where there is no next one."""
        return margin(self.top_scores(window + 1))

    def entropies(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q): see :func:`entropy`."""
        return entropy(self.top_scores(depth))

    def variations(self, depth: int = DEPTH) -> FloatArray:
        """(S, Q): see :func:`variation`."""
        return variation(self.top_scores(depth))

    def _shared_depths(self, first: int, second: int, depth: int) -> IntArray:
        """(Q, depth): documents that both sources have among their first 1 … ``depth``."""
        ranks = self.runs.ranks[[first, second]]
        worse = ranks.max(axis=0)
        rows = np.flatnonzero((ranks > 0).all(axis=0) & (worse <= depth))
        place = self.runs.query_index[rows] * depth + worse[rows] - 1
        counts = np.bincount(place, minlength=len(self.runs.queries) * depth)
        shared: IntArray = np.cumsum(counts.reshape(-1, depth), axis=1)
        return shared

    def overlaps(self, depth: int = DEPTH) -> FloatArray:
        """(Q,): share of their first ``depth`` documents that two sources share, mean over pairs.

        Of lists that are shorter, the share of the longer one's documents; 0 where both are empty,
        1 for a single source.
        """
        sizes = np.minimum(self.lengths, depth)
        shares = [
            self._shared_depths(a, b, depth)[:, -1] / np.maximum(np.maximum(sizes[a], sizes[b]), 1)
            for a, b in combinations(range(len(sizes)), 2)
        ]
        return mean_of_rows(shares) if shares else np.ones(len(self.runs.queries))

    def rank_overlaps(self, depth: int = DEPTH) -> FloatArray:
        """(Q,): rank-biased overlap of two sources to ``depth``, mean over pairs of sources.

        Σ p^(d−1)·|A_d ∩ B_d| / d over Σ p^(d−1), p = .9 (Webber, Moffat and Zobel, "A similarity
        measure for indefinite rankings", TOIS 2010, equation 4, cut at ``depth`` and divided by
        its greatest value).
        """
        depths = np.arange(1, depth + 1)
        factors = PERSISTENCE ** (depths - 1)
        values = [
            (self._shared_depths(a, b, depth) / depths) @ factors / factors.sum()
            for a, b in combinations(range(len(self.runs.sources)), 2)
        ]
        return mean_of_rows(values) if values else np.ones(len(self.runs.queries))

    def count_words(self) -> FloatArray:
        """(Q,): words of each query's text, separated by blanks.

        Raises:
            AlignmentError: A query has no text.
        """
        words = self.runs.words or (None,) * len(self.runs.queries)
        for query, count in zip(self.runs.queries, words, strict=True):
            if count is None:
                raise AlignmentError(
                    f"query {query!r} has no text, and the policy counts its words: add 'text' to "
                    "the queries file, or choose another feature"
                )
        return np.array(words, dtype=np.float64)


def mean_of_rows(rows: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """(Q,): the mean over the first axis, the same to the last bit for any order of the rows."""
    return sum_terms(np.stack(list(rows))) / len(rows)


def margin(top: FloatArray) -> FloatArray:
    """Top score − mean of the others, over the last axis; 0 where there is no top or no others."""
    counts = np.isfinite(top[..., 1:]).sum(axis=-1)
    rest = np.nansum(top[..., 1:], axis=-1) / np.maximum(counts, 1)
    return np.where((counts > 0) & np.isfinite(top[..., 0]), top[..., 0] - rest, 0.0)


def entropy(top: FloatArray) -> FloatArray:
    """Normalized Shannon entropy of min-max scaled scores, over the last axis, in [0, 1].

    With x the scores scaled to [0, 1] and p = x / Σ x: −Σ p·ln p / ln n. Near 0 = one document
    stands out. 0 for a single document; 1 for equal scores, and for an empty list.
    """
    known = np.isfinite(top)
    counts = known.sum(axis=-1)
    low = np.min(np.where(known, top, np.inf), axis=-1, keepdims=True)
    high = np.max(np.where(known, top, -np.inf), axis=-1, keepdims=True)
    is_flat = ~(high > low)[..., 0]
    spread = np.where(is_flat[..., None], 1.0, high - low)
    scaled = np.where(known & ~is_flat[..., None], top - np.where(counts[..., None], low, 0.0), 0.0)
    scaled = scaled / spread
    shares = scaled / np.where(is_flat, 1.0, scaled.sum(axis=-1))[..., None]
    logs = np.log(np.where(shares > 0, shares, 1.0))
    value = -(shares * logs).sum(axis=-1) / np.log(np.maximum(counts, 2))
    return np.where(counts == 1, 0.0, np.where(is_flat, 1.0, value))


def variation(top: FloatArray) -> FloatArray:
    """Standard deviation of the scores over their mean's size, over the last axis.

    0 for fewer than two scores, and where the mean is 0.
    """
    known = np.isfinite(top)
    counts = np.maximum(known.sum(axis=-1), 1)
    means = np.where(known, top, 0.0).sum(axis=-1) / counts
    squares = np.where(known, top - means[..., None], 0.0) ** 2
    deviations = np.sqrt(squares.sum(axis=-1) / counts)
    return np.where(means != 0, deviations / np.where(means != 0, np.abs(means), 1.0), 0.0)


class Variant(StrictModel):
    """What a policy changes of the system for some queries; what is None stays.

    Attributes:
        weights: The fusion's weights, by source name or role, in place of its own.
        fusion: Another fusion, as in a system; ``weights`` are then its weights.
        rerank: False = these queries are not reranked.
    """

    weights: dict[str, Weight] | None = None
    fusion: dict[str, Any] | None = None
    rerank: bool = True

    @field_validator("fusion", mode="before")
    @classmethod
    def _check_fusion(cls, value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if value is None:
            return None
        data = {"method": value} if isinstance(value, str) else value
        fusions.validate_field(data)
        return data

    @property
    def changes(self) -> str:
        """``weights bm25 1, dense 3; no reranking``, or that nothing changes."""
        parts = []
        if self.fusion is not None:
            parts.append(f"fusion {format_mapping(self.fusion)}")
        if self.weights is not None:
            parts.append(f"weights {format_mapping(self.weights)}")
        if not self.rerank:
            parts.append("no reranking")
        return "; ".join(parts) or "the system as it is"


def format_mapping(values: Mapping[str, Any]) -> str:
    """``bm25 1, dense 0.5``."""
    return ", ".join(
        f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
        for key, value in values.items()
    )


class Choice(NamedTuple):
    """The variant of each query.

    Attributes:
        codes: Shape (Q,): index into ``variants``.
        variants: Distinct variants.
    """

    codes: IntArray
    variants: tuple[Variant, ...]


class Policy(Method):
    """Picks a variant of the system for each query, from what is known at query time.

    Attributes:
        needs_reranker: Whether it only makes sense in a system with a reranker.
    """

    needs_reranker: ClassVar[bool] = False

    @abstractmethod
    def choose(self, features: QueryFeatures) -> Choice:
        """The variant of each query; that of one never depends on another.

        Raises:
            AlignmentError: A feature that it reads is not known of a query.
            ConfigError: The sources do not fit.
        """

    def explain_choice(self, features: QueryFeatures) -> str:  # noqa: ARG002 - of some
        """Why the only query of these features gets its variant: the feature and its value."""
        return ""

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that the policy cannot tell apart.

        Args:
            sources: Names of the system's sources, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: They do not fit.
        """

    def fixed_variants(self) -> tuple[Variant, ...]:
        """The variants that the configuration itself names."""
        return ()

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - of some
        """What can be tuned, with paths relative to the policy.

        Args:
            sources: Names of the system's sources.
        """
        return ()


policies: MethodRegistry[Policy] = MethodRegistry(
    "policy", "fusion_bench.methods.policies", "fusion_bench.policies", Policy
)


class FittedPolicy(StrictModel):
    """The numbers that a policy learned.

    Attributes:
        fitted_on: Ids of the queries that it learned from.
    """

    fitted_on: frozenset[str]

    @abstractmethod
    def predict_codes(self, matrix: FloatArray) -> IntArray:
        """(Q,): the variant of each query.

        Args:
            matrix: Shape (Q, F): the features.
        """

    def check_queries(self, queries: Sequence[str]) -> None:
        """Refuse queries that it was fitted on.

        Raises:
            AlignmentError: One of them is.
        """
        for query in queries:
            if query in self.fitted_on:
                raise AlignmentError(
                    f"query {query!r} is one that the policy was fitted on: its choice would be "
                    "in-sample: choose for other queries, or fit on other queries"
                )


class TrainablePolicy(Policy):
    """A policy whose numbers are learned; :meth:`cross_fit` does so out of fold.

    Attributes:
        measure: The measure that the choice is to raise, of the fused list.
        folds: Each query's choice is learned from the other folds; fewer folds where there are
            fewer groups of queries.
        fold_seed: Another one deals the groups into other folds.
    """

    measure: str = "nDCG@10"
    folds: Annotated[int, Field(ge=2, le=100)] = 5
    fold_seed: int = 0

    @abstractmethod
    def variants(self, features: QueryFeatures) -> tuple[Variant, ...]:
        """(V,): what it chooses among."""

    @abstractmethod
    def feature_matrix(self, features: QueryFeatures) -> FloatArray:
        """(Q, F): what it chooses by."""

    @abstractmethod
    def fit(self, matrix: FloatArray, values: FloatArray, queries: Sequence[str]) -> FittedPolicy:
        """Learn from some queries.

        Args:
            matrix: Shape (Q, F).
            values: Shape (V, Q): the measure of each variant.
            queries: Their ids, (Q,).
        """

    def choose(self, features: QueryFeatures) -> Choice:  # noqa: ARG002 - it knows nothing yet
        """Refused: only a fitted policy can choose.

        Raises:
            AlignmentError: Always.
        """
        raise AlignmentError(
            f"policy {self.method!r} is not fitted: it learns from judged queries first: evaluate "
            "it on a dataset"
        )

    def cross_fit(
        self, matrix: FloatArray, values: FloatArray, queries: Sequence[str], fold: IntArray
    ) -> tuple[FittedPolicy, ...]:
        """A model without each fold, and last one of everything.

        Args:
            matrix: As for :meth:`fit`.
            values: As for :meth:`fit`.
            queries: As for :meth:`fit`.
            fold: Shape (Q,): 0 … K−1.
        """

        def fit(keep: BoolArray) -> FittedPolicy:
            ids = [query for query, is_kept in zip(queries, keep, strict=True) if is_kept]
            return self.fit(matrix[keep], values[:, keep], ids)

        masks = [fold != k for k in range(int(fold.max()) + 1)]
        return tuple(fit(keep) for keep in [*masks, np.ones(len(fold), dtype=bool)])

    def deal_queries(self, queries: Sequence[str], groups: Sequence[str]) -> dict[str, int]:
        """Query id → fold; groups stay whole.

        Raises:
            AlignmentError: Fewer than two groups.
        """
        fold = deal_folds(groups, self.folds, self.fold_seed, self.method)
        return {query: fold[group] for query, group in zip(queries, groups, strict=True)}


class CrossFittedPolicy(Policy):
    """A trained policy, fitted so that no query's choice learned from that query.

    Attributes:
        settings: The policy that was fitted.
        choices: What it chooses among, (V,).
        models: The K models, each fitted without one fold; last, one fitted on all queries.
        fold_of_query: Query id → fold.
    """

    settings: TrainablePolicy = Field(exclude=True)
    choices: tuple[Variant, ...] = Field(exclude=True, repr=False)
    models: tuple[FittedPolicy, ...] = Field(exclude=True, repr=False)
    fold_of_query: Mapping[str, int] = Field(exclude=True, repr=False)

    def choose(self, features: QueryFeatures) -> Choice:
        """Each query's variant by the model that did not learn from it."""
        matrix, queries = self.settings.feature_matrix(features), features.runs.queries
        last = len(self.models) - 1
        index = np.array([self.fold_of_query.get(query, last) for query in queries])
        codes = np.zeros(len(queries), dtype=np.int64)
        for number in np.unique(index).tolist():
            rows = np.flatnonzero(index == number)
            model = self.models[number]
            model.check_queries([queries[row] for row in rows.tolist()])
            codes[rows] = model.predict_codes(matrix[rows])
        return Choice(codes, self.choices)

    def explain_choice(self, features: QueryFeatures) -> str:
        """Which model chose."""
        [query] = features.runs.queries
        if query not in self.fold_of_query:
            return "predicted to be best by the model that learned from every judged query"
        return "predicted to be best by a model that did not learn from this query"
