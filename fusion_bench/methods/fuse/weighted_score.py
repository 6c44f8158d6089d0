"""Fusions of normalized scores: sums, means, and one score that stands for all."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.parameters import Parameter, choice, real
from fusion_bench.data.aligned_runs import AlignedRuns, Ties, cached_by_view
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, choose_values, sum_terms
from fusion_bench.methods.fuse._base import (
    AlphaWeightedFusion,
    EngineForm,
    Fusion,
    Homogeneity,
    ScoreTerms,
    TermFusion,
    WeightedFusion,
    WeightedMean,
    fusions,
    make_source_terms,
    match_sources,
)
from fusion_bench.methods.normalize import AnyNormalizer, linear
from fusion_bench.methods.normalize._base import normalizers

#: Normalizers for which a view remembers the greatest score of each list.
TOPS_KEPT = 4


class ScoreFusion(TermFusion):
    """A fusion of normalized scores.

    Attributes:
        normalize: How each list's scores are scaled first.
    """

    normalize: AnyNormalizer = linear.RawScores()

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """Return the method's own parameters, the choice of a normalizer, and those of each."""
        path = "normalize"
        built_in = normalizers.load_built_in()
        models = {name: model for name, model in built_in.items() if model.searched}
        scales = (
            parameter.add_prefix(path).add_condition(f"{path}.method", name)
            for name, model in models.items()
            for parameter in model(method=name).space()
        )
        return (*super().space(sources), choice(f"{path}.method", *models), *scales)

    @property
    def keeps_single_list(self) -> bool:
        """Whether the normalizer keeps the order, which an inverted or a flattened scale loses."""
        return self.normalize.keeps_order

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit the parameters, a normalizer for each source among them.

        Args:
            sources: All of a system's sources, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: A weight or a normalizer fits no source, or two fit one.
        """
        super().check_sources(sources, roles)
        if isinstance(self.normalize, linear.BySource):
            keys = self.normalize.sources
            match_sources("normalize.sources", keys, sources, roles, needed=keys)

    def zero_filled(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): normalized scores; 0 where a source did not return the document."""
        return _zero_filled(runs, self.normalize)

    def greatest_scores(self, runs: AlignedRuns) -> FloatArray:
        """(S, Q): the greatest normalized score of each list; NaN for an empty one."""
        return _greatest_scores(runs, self.normalize)

    def greatest_parts(self, runs: AlignedRuns) -> FloatArray:
        """(S, Q): what a list adds to a sum at most: its greatest score, or 0 by being absent."""
        return np.fmax(self.greatest_scores(runs), 0.0)


class WeightedScoreFusion(ScoreFusion, WeightedFusion):
    """A fusion of normalized scores whose sources have weights that multiply its score."""

    homogeneity: ClassVar[Homogeneity] = 1

    def weight_column(self, runs: AlignedRuns) -> FloatArray:
        """(S, 1): the weights."""
        return self.source_weights(runs.sources, runs.roles)[:, None]


@cached_by_view()
def returned_by(runs: AlignedRuns) -> BoolArray:
    """(S, N): which source returned which document."""
    return np.asarray(runs.ranks > 0)


@cached_by_view()
def _source_counts(runs: AlignedRuns) -> IntArray:
    """(N,): n, how many sources returned each document."""
    return np.asarray(returned_by(runs).sum(axis=0))


@cached_by_view()
def _list_counts(runs: AlignedRuns) -> IntArray:
    """(Q,): how many sources returned anything, the most that n can be."""
    return np.asarray((runs.lengths > 0).sum(axis=0))


@cached_by_view(keep=TOPS_KEPT, key=lambda normalizer: normalizer.model_dump_json())
def _zero_filled(runs: AlignedRuns, normalizer: AnyNormalizer) -> FloatArray:
    return choose_values(returned_by(runs), normalizer.normalize_scores(runs), 0.0)


@cached_by_view(keep=TOPS_KEPT, key=lambda normalizer: normalizer.model_dump_json())
def _greatest_scores(runs: AlignedRuns, normalizer: AnyNormalizer) -> FloatArray:
    """(S, Q): the greatest normalized score of each list; NaN for an empty one."""
    return _list_extremes(runs, normalizer.normalize_scores(runs), np.fmax)


@cached_by_view(keep=TOPS_KEPT, key=lambda normalizer: normalizer.model_dump_json())
def _least_scores(runs: AlignedRuns, normalizer: AnyNormalizer) -> FloatArray:
    """(S, Q): the least normalized score of each list; NaN for an empty one."""
    return _list_extremes(runs, normalizer.normalize_scores(runs), np.fmin)


def _list_extremes(runs: AlignedRuns, scores: FloatArray, keep: np.ufunc) -> FloatArray:
    """(S, Q): the least or greatest score of each list, NaN for an empty one.

    Args:
        runs: The view.
        scores: (S, N); NaN where a source did not return the document.
        keep: ``np.fmin`` or ``np.fmax``.
    """
    out: FloatArray = np.full((len(scores), len(runs.queries)), np.nan)
    filled = np.flatnonzero(np.diff(runs.offsets))
    if len(filled):
        out[:, filled] = keep.reduceat(scores, runs.offsets[filled], axis=1)
    return out


FOX_SHAW = "Fox, Shaw, Combination of multiple searches, TREC-2 1994"
#: Greatest exponent that a search tries.
GREATEST_GAMMA = 2.0


@fusions.register
class CombSum(ScoreFusion):
    """``comb_sum``: Σ_s x_s over the sources that returned the document.

    Source: Fox and Shaw, "Combination of multiple searches", TREC-2 1994. They add the scores as
    they are; where the lists differ in scale, set ``normalize``.

    Example: a document with .8 and .5 in two lists of three has 1.3.
    """

    formula = "Σ score"
    source = FOX_SHAW

    method: str = "comb_sum"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source."""
        return make_source_terms(runs, self.zero_filled(runs))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores."""
        return np.asarray(sum_terms(self.greatest_parts(runs)))


@fusions.register
class CombGmnz(ScoreFusion):
    """``comb_gmnz``: n^γ · Σ_s x_s, n = how many sources returned the document.

    Source: Lee, "Analyses of multiple evidence combination", SIGIR 1997, whose γ weighs how many
    lists agree: 0 = ``comb_sum``, 1 = ``comb_mnz``.

    Example: γ = 2 makes 4 · 1.3 = 5.2 of .8 and .5 in two lists of three.

    Attributes:
        gamma: γ, at least 0.
    """

    formula = "n^γ · Σ score"
    source = "Lee, Analyses of multiple evidence combination, SIGIR 1997"

    method: str = "comb_gmnz"
    gamma: Annotated[float, Field(ge=0, le=100)] = 1.0
    tunable = (real("gamma", 0.0, GREATEST_GAMMA),)

    def _factors(self, runs: AlignedRuns) -> FloatArray:
        """(S+1,): n^γ for each n."""
        return np.asarray(np.arange(len(runs.sources) + 1, dtype=np.float64) ** self.gamma)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source times the factor."""
        factors = self._factors(runs)[_source_counts(runs)]
        return make_source_terms(runs, self.zero_filled(runs) * factors)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, found by every source that returned anything."""
        factors = self._factors(runs)[_list_counts(runs)]
        return np.asarray(sum_terms(self.greatest_parts(runs) * factors))


class SelectedScore(ScoreFusion):
    """A fusion that chooses among a document's scores, or averages them."""

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest score of any list."""
        return np.asarray(np.fmax.reduce(self.greatest_scores(runs), axis=0))


@fusions.register
class CombAnz(SelectedScore):
    """``comb_anz``: Σ_s x_s / n, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. It equals ``weighted_score`` with equal weights
    and ``missing: skip``: a document of one list beats one of two lists with a lower mean.

    Example: .8 and .5 in two lists of three give .65.
    """

    formula = "Σ score / n"
    source = FOX_SHAW

    method: str = "comb_anz"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source, over how many returned the document."""
        counts = _source_counts(runs).astype(np.float64)
        return make_source_terms(runs, self.zero_filled(runs), counts)


def keep_rows(scores: FloatArray, rows: IntArray) -> FloatArray:
    """(S, N): the scores of one source a document, 0 elsewhere.

    Args:
        scores: (S, N).
        rows: (N,): the source.
    """
    terms: FloatArray = np.zeros(scores.shape)
    np.put_along_axis(terms, rows[None], np.take_along_axis(scores, rows[None], axis=0), axis=0)
    return terms


@fusions.register
class CombMax(SelectedScore):
    """``comb_max``: max_s x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. The list with the largest scale decides, unless
    ``normalize`` is set.

    Example: .8 and .5 in two lists of three give .8.
    """

    formula = "max score"
    source = FOX_SHAW

    method: str = "comb_max"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the greatest score."""
        return np.asarray(np.fmax.reduce(self.normalize.normalize_scores(runs), axis=0))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The greatest score, in the row of the source that gives it."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), -np.inf)
        return make_source_terms(runs, keep_rows(self.zero_filled(runs), np.argmax(scores, axis=0)))


@fusions.register
class CombMin(SelectedScore):
    """``comb_min``: min_s x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. A document of one list has no other score to be
    less than that one.

    Example: .8 and .5 in two lists of three give .5.
    """

    formula = "min score"
    source = FOX_SHAW

    method: str = "comb_min"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the least score."""
        return np.asarray(np.fmin.reduce(self.normalize.normalize_scores(runs), axis=0))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The least score, in the row of the source that gives it."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), np.inf)
        return make_source_terms(runs, keep_rows(self.zero_filled(runs), np.argmin(scores, axis=0)))


@fusions.register
class CombMed(SelectedScore):
    """``comb_med``: the median of x_s over the sources that returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. Of an even number it is the mean of the middle
    two, so that with two lists it equals ``comb_anz``.

    Example: .8 and .5 in two lists of three give .65; .8, .5 and .1 in all three give .5.
    """

    formula = "median score"
    source = FOX_SHAW

    method: str = "comb_med"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the median score, the same as the terms give, without looking for its source."""
        rows = list(np.where(returned_by(runs), self.zero_filled(runs), np.inf))  # absent ones last
        for last in range(len(rows) - 1, 0, -1):  # numpy sorts many short columns far slower
            for s in range(last):
                low = np.minimum(rows[s], rows[s + 1])
                rows[s], rows[s + 1] = low, np.maximum(rows[s], rows[s + 1])
        counts, columns = _source_counts(runs), np.arange(len(runs.documents))
        ordered = np.array(rows)
        return np.asarray((ordered[(counts - 1) // 2, columns] + ordered[counts // 2, columns]) / 2)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The middle score or two, in the rows of the sources that give them."""
        scores = np.where(returned_by(runs), self.zero_filled(runs), np.inf)  # absent ones last
        order = np.argsort(scores, axis=0, kind="stable")
        counts = _source_counts(runs)
        lower, upper = (
            np.take_along_axis(order, place[None], axis=0)[0]
            for place in ((counts - 1) // 2, counts // 2)
        )
        terms = keep_rows(self.zero_filled(runs), lower)
        is_pair = lower != upper
        terms += np.where(is_pair, keep_rows(self.zero_filled(runs), upper), 0.0)
        return make_source_terms(runs, terms, np.where(is_pair, 2.0, 1.0))


@fusions.register
class MaxScore(WeightedScoreFusion):
    """``max_score``: max_s w_s·x_s over the sources that returned the document, x scaled.

    Source: ``score_max`` of openJiuwen (pull request 322), which scales each list first; with
    equal weights it is CombMAX (Fox and Shaw 1994) of min-max scores.

    Example: .8 at weight 1 and .5 at weight 2 give 1.
    """

    formula = "max w·score"
    source = "openJiuwen; Fox, Shaw 1994"

    method: str = "max_score"
    normalize: AnyNormalizer = linear.MinMax()

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The greatest weighted score, in the row of the source that gives it."""
        weighted = self.weight_column(runs) * self.zero_filled(runs)
        rows = np.argmax(np.where(returned_by(runs), weighted, -np.inf), axis=0)
        return make_source_terms(runs, keep_rows(weighted, rows))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the greatest weighted score of any list."""
        weighted = self.weight_column(runs) * self.greatest_scores(runs)
        return np.asarray(np.fmax.reduce(weighted, axis=0))


@fusions.register
class WeightedScore(WeightedScoreFusion, AlphaWeightedFusion):
    """``weighted_score``: Σ w_s·x_s / Σ w_s over the sources that returned the document.

    Source: with ``missing: zero`` and min-max it is the convex combination of Bruch, Gai and
    Ingber, "An analysis of fusion functions for hybrid retrieval", TOIS 2023; ``skip`` as in
    CONV-07-05.

    Attributes:
        normalize: How each list's scores are scaled first.
        missing: What counts for a source that did not return the document: ``skip`` = nothing (it
            leaves the mean), ``zero`` = 0, ``min`` = its least score for the query (nothing where
            it returned no document for the query).
    """

    homogeneity = 0
    formula = "Σ w·score / Σ w"
    source = "Bruch, Gai, Ingber 2023"

    method: str = "weighted_score"
    normalize: AnyNormalizer = linear.RawScores()
    missing: Literal["skip", "zero", "min"] = "skip"

    @property
    def skips_unasked(self) -> bool:
        """Whether scaled scores are averaged with ``skip`` although nobody wrote ``missing``."""
        is_written = "missing" in self.model_fields_set
        return self.missing == "skip" and not is_written and self.normalize.method != "none"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normalizer with its space, and how absence counts."""
        return (*super().space(sources), choice("missing", "skip", "zero", "min"))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source, over the sum of the weights that count."""
        weights = self.weight_column(runs)
        scores = self._weighted_mean(runs).features(runs, slice(None))
        present = ~np.isnan(scores)
        divisor = sum_terms(np.where(present, weights, 0.0))
        return make_source_terms(runs, np.where(present, weights * scores, 0.0), divisor)

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The weights, and the score of each document in each source."""
        return self._weighted_mean(runs)

    def _weighted_mean(self, runs: AlignedRuns) -> WeightedMean:
        key = f"{self.missing} {self.normalize.model_dump_json()}"
        weights = self.source_weights(runs.sources, runs.roles)
        scores = partial(self.normalize.normalize_scores, runs)
        absent: Callable[[], FloatArray] | float = 0.0 if self.missing == "zero" else np.nan
        if self.missing == "min":
            absent = partial(_least_scores, runs, self.normalize)
        reads_ranks = vars(type(self.normalize)).get("reads_ranks", True)
        return WeightedMean(key, scores, absent, weights, reads_ranks=reads_ranks)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): from the greatest score of each list; NaN for a query without candidates."""
        weights = self.weight_column(runs)
        tops = _greatest_scores(runs, self.normalize)
        if self.missing == "skip":
            return np.asarray(np.fmax.reduce(tops, axis=0))
        if self.missing == "zero":
            tops = np.fmax(tops, 0.0)
        present = ~np.isnan(tops)
        total = sum_terms(np.where(present, weights * tops, 0.0))
        share = sum_terms(np.where(present, weights, 0.0))
        out: FloatArray = np.full(len(runs.queries), np.nan)
        np.divide(total, share, out=out, where=share > 0)
        return out


class CollapsedList(WeightedScore):
    """The only list of a system as it is: by rank, with its scores."""

    ties: ClassVar[Ties | None] = "first_seen"


@fusions.register
class WeightedSum(WeightedScoreFusion, AlphaWeightedFusion):
    """``weighted_sum``: Σ_s w_s·x_s, not divided by Σ w.

    Source: linear combination, as ``wsum`` of ranx; Bruch, Gai and Ingber 2023 for two lists whose
    weights add up to 1.

    Example: .8 at weight 2 and .5 at weight 1 give 2.1.

    Attributes:
        missing: What counts for a source that did not return the document: ``zero`` = 0, ``min`` =
            its least score for the query (0 where it returned nothing for the query).
    """

    formula = "Σ w·score"
    source = "linear combination; ranx (wsum); Bruch, Gai, Ingber 2023"

    method: str = "weighted_sum"
    normalize: AnyNormalizer = linear.MinMax()
    missing: Literal["zero", "min"] = "zero"

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The weights, the normalizer with its space, and how absence counts."""
        return (*super().space(sources), choice("missing", "zero", "min"))

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted score in each source."""
        scores = self.zero_filled(runs)
        if self.missing == "min":
            least = np.nan_to_num(_least_scores(runs, self.normalize))[:, runs.query_index]
            scores = choose_values(returned_by(runs), scores, least)
        return make_source_terms(runs, self.weight_column(runs) * scores)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the weighted greatest scores, or of 0 where being absent gives more."""
        parts = self.greatest_parts(runs)
        if self.missing == "min":  # being absent gives no more than the least score
            parts = np.nan_to_num(self.greatest_scores(runs))
        return np.asarray(sum_terms(self.weight_column(runs) * parts))


class DelegatedFusion(Fusion):
    """A fusion that computes what another one does."""

    @property
    @abstractmethod
    def canonical(self) -> Fusion:
        """The other one."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): its scores."""
        return self.canonical.fuse(runs)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """Its terms."""
        return self.canonical.score_terms(runs)

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """Its form."""
        return self.canonical.engine_form(runs)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): as for the other one."""
        return self.canonical.max_possible(runs)

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """How scores scale with the weights of :attr:`canonical`."""
        return self.canonical.weight_homogeneity


@fusions.register
class DistributionBasedFusion(DelegatedFusion, WeightedFusion):
    """``dbsf``: Σ_s w_s·x_s, x the score on [mean − 3·sd, mean + 3·sd] of its list, as 0 to 1.

    Source: distribution-based score fusion as in Qdrant (``lib/segment/src/common/score_fusion.rs``
    at 10ef9ee): sample standard deviation, .5 in a list of equal scores or of one document, and
    nothing clipped. Qdrant computes in float32.

    Example: a list 3, 2, 1 has mean 2 and sd 1, so that its scores become .667, .5 and .333.

    Attributes:
        clip: Whether scores beyond three standard deviations become 0 and 1.
    """

    formula = "Σ w·(score − (mean − 3·sd)) / (6·sd)"
    source = "Mazzeschi 2023; Qdrant"

    method: str = "dbsf"
    clip: bool = False

    @property
    def canonical(self) -> WeightedSum:
        """The weighted sum that it is."""
        return WeightedSum(
            weights=self.weights, normalize=linear.DBSF(constant=0.5, clip=self.clip)
        )

    @property
    def keeps_single_list(self) -> bool:
        """Only if nothing is clipped."""
        return not self.clip


@fusions.register
class TM2C2(DelegatedFusion, AlphaWeightedFusion):
    """``tm2c2``: α·φ(semantic) + (1 − α)·φ(keyword), φ(x) = (x − lo) / (max − lo).

    Source: theoretical min-max convex combination of Bruch, Gai and Ingber, "An analysis of fusion
    functions for hybrid retrieval", TOIS 2023. ``lo`` is the least score that a source can give
    (−1 of a cosine, 0 of BM25), not the least that it gave. A document that a source did not return
    has 0 there. More than two sources take ``weights``, which are divided by their sum.

    Example: cosine .6 of at most .8 is φ = 1.6/1.8 = .889, BM25 12 of at most 16 is .75; α = .5
    makes .819 of them.

    Attributes:
        lo: Least possible score by source name or role.
    """

    formula = "Σ w·(score − lo)/(max − lo) / Σ w"
    source = "Bruch, Gai, Ingber, An analysis of fusion functions, TOIS 2023"

    method: str = "tm2c2"
    lo: dict[str, float] = Field(
        default_factory=lambda: {"semantic": -1.0, "keyword": 0.0}, min_length=1
    )

    @property
    def canonical(self) -> WeightedScore:
        """The weighted mean that it is."""
        return WeightedScore(
            weights=self.weights,
            alpha=self.alpha,
            normalize=linear.TheoreticalMinMax(lo=self.lo),
            missing="zero",
        )


WU_CRESTANI = "Wu, Crestani, Data fusion with estimated weights, CIKM 2002"


@fusions.register
class Mixed(WeightedScoreFusion):
    """``mixed``: √n · Σ_s w_s·x_s, n = how many sources returned the document.

    Source: Wu and Crestani, "Data fusion with estimated weights", CIKM 2002, as ranx computes it.

    Example: .8 at weight 2 and .5 at weight 1 in two lists of three give √2 · 2.1 = 2.970.
    """

    formula = "√n · Σ w·score"
    source = WU_CRESTANI

    method: str = "mixed"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The weighted score in each source, times √n."""
        weighted = self.weight_column(runs) * self.zero_filled(runs)
        return make_source_terms(runs, weighted * np.sqrt(_source_counts(runs)))

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, found by every source that returned anything."""
        weighted = self.weight_column(runs) * self.greatest_parts(runs)
        return np.asarray(sum_terms(weighted * np.sqrt(_list_counts(runs))))


@fusions.register
class CombMnz(WeightedScoreFusion):
    """``comb_mnz``: (Σ_s w_s) · Σ_s x_s, both over the sources that returned the document.

    With equal weights that is n · Σ_s x_s, n = how many sources returned the document.

    Source: Fox and Shaw 1994, as for ``comb_sum``. Lee, "Analyses of multiple evidence
    combination", SIGIR 1997, finds it best after min-max normalization. Negative scores are
    punished for being found twice. The weights are those of ``wmnz``: Wu and Crestani 2002, as for
    ``mixed``.

    Example: .8 and .5 in two lists of three give 2.6; with weights 2 and 1 they give 3.9.
    """

    formula = "Σ w · Σ score, n · Σ score with equal weights"
    source = f"{FOX_SHAW}; {WU_CRESTANI}"

    method: str = "comb_mnz"

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The score in each source, times the sum of the weights of all that returned it."""
        weights = self.weight_column(runs)
        if (weights == 1).all():  # the sum of equal weights is a count, which a view keeps
            return make_source_terms(runs, self.zero_filled(runs) * _source_counts(runs))
        share = sum_terms(np.where(returned_by(runs), weights, 0.0))
        return make_source_terms(runs, self.zero_filled(runs) * share)

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): the sum of the greatest scores, times the weights of all that returned anything."""
        share = sum_terms(np.where(runs.lengths > 0, self.weight_column(runs), 0.0))
        return np.asarray(sum_terms(self.greatest_parts(runs) * share))
