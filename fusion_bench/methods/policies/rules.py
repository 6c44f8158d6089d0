"""Policies by a rule: entropy, margin, overlap, ambiguity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from fusion_bench.config.models import Rank
from fusion_bench.config.parameters import Parameter, Params, choice, real
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.methods.fuse import SEMANTIC
from fusion_bench.methods.policies._base import (
    DEPTH,
    Choice,
    Policy,
    QueryFeatures,
    Variant,
    mean_of_rows,
    policies,
    variation,
)

Share = Annotated[float, Field(ge=0, le=1)]


def _relative_gap(top: FloatArray) -> FloatArray:
    """(first − second) / (first − last) score over the last axis, in [0, 1].

    1 where fewer than two scores are known: nothing competes; 0 where all are equal.
    """
    known = np.isfinite(top)
    counts = known.sum(axis=-1)
    last = np.min(np.where(known, top, np.inf), axis=-1)
    second = top[..., 1] if top.shape[-1] > 1 else last
    with np.errstate(invalid="ignore"):
        gap, spread = top[..., 0] - second, top[..., 0] - last
        share = np.where(spread > 0, gap / np.where(spread > 0, spread, 1.0), 0.0)
    return np.where(counts < 2, 1.0, share)


def _is_semantic(
    method: str, sources: Sequence[str], roles: Sequence[frozenset[str]]
) -> list[bool]:
    """(S,): which sources have the role ``semantic``.

    Raises:
        ConfigError: None of them has, or all have.
    """
    semantic = [SEMANTIC in names for names in roles]
    if all(semantic) or not any(semantic):
        listed = ", ".join(
            f"{source} ({', '.join(sorted(names)) or 'no role'})"
            for source, names in zip(sources, roles, strict=True)
        )
        raise ConfigError(
            f"policy {method!r} weighs sources of role {SEMANTIC!r} against others, and needs both "
            f"(sources: {listed}): give the runs roles in dataset.yaml"
        )
    return semantic


def _index_variants(sources: Sequence[str], weights: FloatArray) -> Choice:
    """The choice of weights that differ by query.

    Args:
        sources: Names, (S,).
        weights: Shape (Q, S), of few distinct values.
    """
    rows, codes = np.unique(weights, axis=0, return_inverse=True)
    variants = tuple(Variant(weights=dict(zip(sources, row, strict=True))) for row in rows.tolist())
    return Choice(codes.reshape(-1), variants)


@policies.register
class EntropyAlpha(Policy):
    """``entropy_alpha``: α = low + (high − low)·σ(steepness·(entropy − midpoint)), by query.

    Source: Weaviate, pull request 12689 ("auto-tune hybrid search alpha"), which names neither
    range nor slope: those are ours. A sharp keyword list (low entropy) leans to keyword search, a
    flat one to semantic search. Sources of role ``semantic`` weigh α, the others 1 − α; α is
    rounded to two decimals.

    Example: with the defaults, entropy .9 gives α = .1 + .8·σ(4) = .89.

    Attributes:
        depth: Number of keyword scores whose entropy counts; several keyword lists: their mean.
        steepness: Slope of the sigmoid; negative turns the rule around.
        midpoint: The entropy at which α is halfway.
        low: Least α; 0 switches semantic sources off.
        high: Greatest α; 1 switches keyword sources off.
    """

    formula = "α = low + (high − low)·σ(steepness·(entropy − midpoint))"
    source = "Weaviate pull request 12689"

    method: str = "entropy_alpha"
    depth: Annotated[Rank, Field(ge=2)] = DEPTH
    steepness: float = 10.0
    midpoint: Share = 0.5
    low: Share = 0.1
    high: Share = 0.9

    @model_validator(mode="after")
    def _check_range(self) -> EntropyAlpha:
        if self.low > self.high:
            raise ValueError(f"low must not be above high, given {self.low:g} and {self.high:g}")
        return self

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources without a semantic one or without another one."""
        _is_semantic(self.method, sources, roles)

    def choose(self, features: QueryFeatures) -> Choice:
        """α by query, as weights of the sources."""
        semantic, _, alphas = self._measure_entropies(features)
        alpha = alphas[:, None]
        weights = np.where(semantic, alpha, np.round(1 - alpha, 2))
        return _index_variants(features.runs.sources, weights)

    def _measure_entropies(
        self, features: QueryFeatures
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(S,) which sources are semantic, (Q,) the entropy of the others, (Q,) α."""
        runs = features.runs
        semantic = np.array(_is_semantic(self.method, runs.sources, runs.roles))
        entropy = mean_of_rows(features.entropies(self.depth)[~semantic])
        share = 1 / (1 + np.exp(np.clip(-self.steepness * (entropy - self.midpoint), -500, 500)))
        return semantic, entropy, np.round(self.low + (self.high - self.low) * share, 2)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The entropy and α."""
        _, entropy, alpha = self._measure_entropies(features)
        return (
            f"the entropy of the first {self.depth} keyword scores is {entropy[0]:.4g}, so α is "
            f"{alpha[0]:g}"
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Slope, midpoint and range."""
        return (
            real("steepness", -20.0, 20.0),
            real("midpoint", 0.0, 1.0),
            real("low", 0.0, 0.5),
            real("high", 0.5, 1.0),
        )

    def presets(self) -> tuple[Params, ...]:
        """A steep rule over the whole range."""
        return ({"steepness": 20.0, "low": 0.0, "high": 1.0},)


@policies.register
class MarginSilencing(Policy):
    """``margin_silencing``: keyword weight · max(0, 1 − (semantic top − mean of next) / margin).

    Source: lilbee, pull request 556 ("Adaptive per-query fusion"), with its margin of .15; how
    many runners-up its window has is not stated there. The fusion's weights are the greatest; the
    factor is rounded to two decimals. A source whose weight becomes 0 takes no part in the query.
    Several semantic lists: the mean of their margins. Scores are raw, so the margin belongs to the
    scale of the model: .15 is one of cosine similarities.

    Example: a top cosine .80 over runners-up of .74 on average is a margin of .06, and the keyword
    weight is 1 − .06 / .15 = .6 of what it was.

    Attributes:
        margin: The margin at which keyword sources are silenced.
        window: Number of runners-up.
        floor: The least factor; 0 silences.
    """

    formula = "w·max(floor, 1 − (top − mean of the next window) / margin)"
    source = "lilbee pull request 556"

    method: str = "margin_silencing"
    margin: Annotated[float, Field(gt=0)] = 0.15
    window: Rank = DEPTH
    floor: Annotated[float, Field(ge=0, le=1)] = 0.0

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources without a semantic one or without another one."""
        _is_semantic(self.method, sources, roles)

    def choose(self, features: QueryFeatures) -> Choice:
        """The scaled weights by query."""
        semantic, _, factor = self._measure_margins(features)
        weights = features.weights * np.where(semantic, 1.0, factor[:, None])
        return _index_variants(features.runs.sources, weights)

    def _measure_margins(self, features: QueryFeatures) -> tuple[BoolArray, FloatArray, FloatArray]:
        """(S,) which sources are semantic, (Q,) their margin, (Q,) the factor of the others."""
        runs = features.runs
        semantic = np.array(_is_semantic(self.method, runs.sources, runs.roles))
        margin = mean_of_rows(features.margins(self.window)[semantic])
        factor = np.clip(1 - margin / self.margin, self.floor, 1.0).astype(np.float64)
        return semantic, margin, np.round(factor, 2)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The margin and the factor."""
        _, margin, factor = self._measure_margins(features)
        return (
            f"the semantic top score is {margin[0]:.4g} above the mean of the next {self.window}, "
            f"so other weights are multiplied by {factor[0]:g}"
        )

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Margin and floor."""
        return real("margin", 0.01, 10.0, log=True), real("floor", 0.0, 1.0)

    def presets(self) -> tuple[Params, ...]:
        """The published margin."""
        return ({"margin": 0.15, "floor": 0.0},)


UNCHANGED = Variant()


@policies.register
class OverlapRules(Policy):
    """``overlap_rules``: variant ``below`` where the overlap is under a threshold, else ``above``.

    Source: rank-biased overlap of Webber, Moffat and Zobel, TOIS 2010; the rule is the plainest of
    those that choose by the agreement of lists. A variant may give ``weights``, a ``fusion`` with
    its k, or ``rerank: false``; one that is left out leaves the system as it is.

    Example: ``{threshold: 0.2, below: {weights: {semantic: 3}}}`` trusts the semantic list where
    the lists share fewer than 2 of their first 10 documents.

    Attributes:
        measure: ``overlap`` = share of the first documents in common; ``rbo`` = rank-biased
            overlap.
        depth: How many documents of each list are looked at.
        threshold: In [0, 1].
        below: What changes for queries under the threshold.
        above: What changes for the others.
    """

    formula = "overlap < threshold → below, otherwise → above"
    source = "Webber, Moffat, Zobel, TOIS 2010 (rank-biased overlap)"

    method: str = "overlap_rules"
    measure: Literal["overlap", "rbo"] = "overlap"
    depth: Rank = DEPTH
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.2
    below: Variant = UNCHANGED
    above: Variant = UNCHANGED

    @model_validator(mode="after")
    def _check_variants(self) -> OverlapRules:
        if self.below == self.above:
            raise ValueError(
                "below and above must differ: give one of them weights, a fusion or rerank: false"
            )
        return self

    def choose(self, features: QueryFeatures) -> Choice:
        """0 = ``below``, 1 = ``above``."""
        read = features.overlaps if self.measure == "overlap" else features.rank_overlaps
        codes = (read(self.depth) >= self.threshold).astype(np.int64)
        return Choice(codes, (self.below, self.above))

    def explain_choice(self, features: QueryFeatures) -> str:
        """The overlap beside the threshold."""
        is_share = self.measure == "overlap"
        value = float((features.overlaps if is_share else features.rank_overlaps)(self.depth)[0])
        name = "overlap" if is_share else "rank-biased overlap"
        side = "below" if value < self.threshold else "not below"
        variant = "below" if value < self.threshold else "above"
        return (
            f"{variant}, because the {name} of the first {self.depth} documents is {value:.4g}, "
            f"{side} {self.threshold:g}"
        )

    def fixed_variants(self) -> tuple[Variant, ...]:
        """The two variants."""
        return self.below, self.above

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Overlap and threshold."""
        return choice("measure", "overlap", "rbo"), real("threshold", 0.0, 1.0)


VARIANTS = (Variant(), Variant(rerank=False))


@policies.register
class RerankWhenAmbiguous(Policy):
    """``rerank_when_ambiguous``: rerank a query only where its fused list has no clear winner.

    Source: archex, pull request 348 (conditional reranker), which reads the variation of BM25
    scores. Here the fused list is read. Its point is to save calls: see the share of queries that
    are reranked beside the quality.

    Example: fused scores 8, 4, 2, 0 have a gap of (8 − 4)/(8 − 0) = .5: above the threshold of .3,
    so the query is not reranked.

    Attributes:
        signal: ``gap`` = (first − second) / (first − last) of the top scores; ``variation`` =
            their standard deviation over their mean.
        depth: Number of top scores.
        threshold: Rerank where the signal is below this.
    """

    formula = "rerank where the gap or variation of the fused scores < threshold"
    source = "archex pull request 348"
    needs_reranker = True

    method: str = "rerank_when_ambiguous"
    signal: Literal["gap", "variation"] = "gap"
    depth: Annotated[Rank, Field(ge=2)] = DEPTH
    threshold: Annotated[float, Field(ge=0)] = 0.3

    def choose(self, features: QueryFeatures) -> Choice:
        """0 = rerank, 1 = do not."""
        signal = self._measure_signal(features)
        return Choice((signal >= self.threshold).astype(np.int64), VARIANTS)

    def _measure_signal(self, features: QueryFeatures) -> FloatArray:
        """(Q,): gap or variation of the fused scores."""
        top = features.fused_top_scores(self.depth)
        return _relative_gap(top) if self.signal == "gap" else variation(top)

    def explain_choice(self, features: QueryFeatures) -> str:
        """The signal beside the threshold."""
        value = float(self._measure_signal(features)[0])
        is_reranked = value < self.threshold
        return (
            f"{'reranked' if is_reranked else 'not reranked'}, because the {self.signal} of the "
            f"first {self.depth} fused scores is {value:.4g}, "
            f"{'below' if is_reranked else 'not below'} {self.threshold:g}"
        )

    def fixed_variants(self) -> tuple[Variant, ...]:
        """Always and never."""
        return VARIANTS

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:  # noqa: ARG002 - no other
        """Signal and threshold."""
        return choice("signal", "gap", "variation"), real("threshold", 0.0, 1.0)
