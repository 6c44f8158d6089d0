"""Fusions learned from features: coordinate ascent, logistic regression, LambdaMART."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from pydantic import Field, field_validator

from fusion_bench.config.parameters import choice, integer, real
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.measures import Measure, compute_measures, parse_measure
from fusion_bench.measures.external_measures import ExternalMeasure
from fusion_bench.methods.fuse._base import ScoreTerms, best_ranks, fusions
from fusion_bench.methods.fuse._trained import FittedFusion, Trainable, is_relevant
from fusion_bench.methods.normalize.linear import MinMax
from fusion_bench.util.optional_imports import import_optional

#: The k of the reciprocal rank that falls slowly.
SLOW_K: Final = 60


class Features(NamedTuple):
    """The features of N candidates.

    Attributes:
        labels: (F,): what each is; three of one name for each source.
        sources: (F,): the row of the source that it is about; None = of no single source.
        values: (F, N): in [0, 1]; 0 where the source did not return the document.
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    values: FloatArray


def candidate_features(runs: AlignedRuns, names: Sequence[str]) -> Features:
    """Three features a source, in the order of the names, and two of all lists together.

    Of each source: 1/rank, 61/(60 + rank), and the score by min-max over its list. Of all:
    ``agreement``, the share of the sources that returned the document, and ``best rank``, 1 over
    its best rank.

    Args:
        runs: The candidates.
        names: Of the sources; one that the runs do not have is 0 throughout.
    """
    scores = np.nan_to_num(MinMax().normalize_scores(runs))
    nothing: FloatArray = np.zeros(len(runs.documents))
    labels: list[str] = []
    sources: list[int | None] = []
    values: list[FloatArray] = []
    for name in sorted(names):
        labels += ("1/rank", "rrf", "score")
        if name not in runs.sources:
            sources += (None, None, None)
            values += (nothing, nothing, nothing)
            continue
        s = runs.sources.index(name)
        sources += (s, s, s)
        values += (_reciprocals(runs.ranks[s], 0), _reciprocals(runs.ranks[s], SLOW_K), scores[s])
    agreement = (runs.ranks > 0).sum(axis=0) / len(names)
    best = _reciprocals(best_ranks(runs.ranks), 0)
    return Features(
        (*labels, "agreement", "best rank"),
        (*sources, None, None),
        np.array([*values, agreement, best]),
    )


class FittedLinearFusion(FittedFusion):
    """A weighted sum of features.

    Attributes:
        intercept: Added to every score.
        weights: (F,): in the order of :func:`candidate_features`.
    """

    intercept: float
    weights: tuple[float, ...]

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The intercept, and weight times feature for each feature."""
        features = candidate_features(runs, self.sources)
        constant: FloatArray = np.full((1, len(runs.documents)), self.intercept)
        terms = np.array(self.weights)[:, None] * features.values
        return ScoreTerms(
            ("intercept", *features.labels),
            (None, *features.sources),
            np.concatenate((constant, terms)),
            np.ones(len(runs.documents)),
        )

    @property
    def keeps_single_list(self) -> bool:
        """Where no weight is negative, and every source has one that falls along its list."""
        *by_source, _, best = self.weights
        slopes = [sum(by_source[f : f + 2]) + best for f in range(0, len(by_source), 3)]
        return min(self.weights) >= 0 and min(slopes) > 0


def _reciprocals(ranks: IntArray, k: int) -> FloatArray:
    """(n,): (k + 1) / (k + rank); 0 at rank 0."""
    values: FloatArray = np.zeros(len(ranks))
    np.divide(k + 1, k + ranks, out=values, where=ranks > 0)
    return values


#: Weights that are tried for a feature, in tenths.
GRID: Final = (0, 1, 2, 3, 5, 7, 10, 15, 20)
#: Relevant documents a query, on average, up to which counting is faster than sorting.
MOST_COUNTED: Final = 16
#: A smaller gain of the mean is rounding.
LEAST_GAIN: Final = 1e-12


@fusions.register
class CoordinateAscent(Trainable):
    """``coordinate_ascent``: Σ w_f·x_f, one weight after another set to the best of a grid.

    Features are those of ``logistic_regression``. It starts as reciprocal rank fusion, where each
    61/(60 + rank) weighs 1 and all else 0. In each round every weight in turn is set to the value
    of 0, .1, .2, .3, .5, .7, 1, 1.5 and 2 with the greatest mean of the measure over the training
    queries; it stays where none is greater. A round without gain is the last. There is no search
    between the values of the grid.

    Source: Metzler and Croft, "Linear feature-based models for information retrieval", Information
    Retrieval 10, 2007, section 4.

    Attributes:
        measure: What is maximized, with the dataset's binary relevance.
        rounds: At most so many.
    """

    formula = "Σ w·feature, w maximizing a measure on a grid"
    source = "Metzler, Croft 2007"

    method: str = "coordinate_ascent"
    measure: str = "nDCG@10"
    rounds: Annotated[int, Field(ge=1, le=100)] = 5
    tunable = (choice("rounds", 1, 2, 5),)  # fewer stay closer to reciprocal rank fusion

    @field_validator("measure")
    @classmethod
    def _check_measure(cls, name: str) -> str:
        try:
            is_external = isinstance(parse_measure(name), ExternalMeasure)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if is_external:
            raise ValueError(f"{name} is computed by ir_measures, which is too slow: give another")
        return name

    def fit(self, runs: AlignedRuns) -> FittedLinearFusion:
        """Climb from reciprocal rank fusion."""
        features = candidate_features(runs, runs.sources)
        tenths = np.array([10 * (label == "rrf") for label in features.labels])
        measure = parse_measure(self.measure, binary_relevance=runs.binary_relevance)
        ascent = _Ascent(runs, features.values, measure)
        for _ in range(self.rounds):
            if not ascent.climb(tenths):
                break
        weights = tuple((tenths / 10).tolist())
        return self.make_fitted(FittedLinearFusion, runs, intercept=0.0, weights=weights)


class _Ascent:
    """The mean of a measure over all queries, by weights in tenths.

    Args:
        runs: The training queries.
        features: Shape (F, N).
        measure: What is maximized.
    """

    def __init__(self, runs: AlignedRuns, features: FloatArray, measure: Measure) -> None:
        self.runs, self.features, self.measure = runs, features, measure
        sizes = np.diff(runs.offsets)
        #: Shape (Q, C): where a row of the table below has a candidate.
        self.is_candidate: BoolArray = np.arange(max(sizes.max(initial=0), 1)) < sizes[:, None]
        #: Candidates whose ranks are counted; None = all are sorted.
        self.counted: IntArray | None = np.flatnonzero(runs.grades > 0)
        few = len(self.counted) <= MOST_COUNTED * len(sizes)
        if measure.required_ranks != "relevant" or measure.judged_only or not few:
            self.counted = None

    def climb(self, tenths: IntArray) -> bool:
        """Set each weight to its best value, in place; whether one changed."""
        best = self.mean(tenths @ self.features)
        is_changed = False
        for f in range(len(tenths)):
            current = int(tenths[f])
            rest = tenths @ self.features - current * self.features[f]
            for value in GRID:
                if value == current:
                    continue
                mean = self.mean(rest + value * self.features[f])
                if mean > best + LEAST_GAIN:
                    tenths[f], best, is_changed = value, mean, True
        return is_changed

    def mean(self, scores: FloatArray) -> float:
        """The mean of the measure by these scores, (N,); equal ones stand as the tie rule says."""
        table: FloatArray = np.full(self.is_candidate.shape, np.inf)
        table[self.is_candidate] = -scores
        ranks = self._sort(table) if self.counted is None else self._count(table, self.counted)
        return float(compute_measures([self.measure], self.runs, ranks).mean())

    def _sort(self, table: FloatArray) -> IntArray:
        """(N,): the ranks of all candidates."""
        order = np.argsort(table, axis=1, kind="stable")
        ranks = np.empty_like(order)
        np.put_along_axis(ranks, order, np.arange(1, len(order.T) + 1)[None], axis=1)
        return np.asarray(ranks[self.is_candidate])

    def _count(self, table: FloatArray, counted: IntArray) -> IntArray:
        """(N,): the ranks of these candidates; 0 for the others."""
        query = self.runs.query_index[counted]
        column = counted - self.runs.offsets[query]
        rows, scores = table[query], table[query, column][:, None]
        is_above = rows < scores
        is_above |= (rows == scores) & (np.arange(len(table.T)) < column[:, None])
        ranks: IntArray = np.zeros(len(self.runs.documents), dtype=np.int64)
        ranks[counted] = is_above.sum(axis=1) + 1
        return ranks


#: Newton's method converges in about ten steps.
MOST_STEPS: Final = 100
#: Keeps the intercept finite where no document is relevant, or all are.
INTERCEPT_PENALTY: Final = 1e-6


@fusions.register
class LogisticRegression(Trainable):
    """``logistic_regression``: the log-odds of relevance, b + Σ w_f·x_f over features x_f.

    Features are 1/rank, 61/(60 + rank) and the min-max score in each source, the share of the
    sources that returned the document, and 1/(best rank). The weights maximize the likelihood of
    the grades, relevant or not, over all candidates, less an L2 penalty on the weights of
    standardized features. An unjudged document counts as not relevant.

    Source: Hosmer and Lemeshow, "Applied logistic regression", 2000, sections 1.2 and 2.2; for the
    fusion of lists, Savoy, Le Calvé and Vrajitoru, "Report on the TREC-5 experiment", 1997.

    Attributes:
        l2: λ of the penalty λ/2·Σ w².
    """

    formula = "b + Σ w·feature, the log-odds of relevance"
    source = "Hosmer, Lemeshow 2000; Savoy, Le Calvé, Vrajitoru 1997"

    method: str = "logistic_regression"
    l2: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    tunable = (real("l2", 1e-2, 1e4, log=True),)

    def fit(self, runs: AlignedRuns) -> FittedLinearFusion:
        """Newton's method on standardized features."""
        features = candidate_features(runs, runs.sources).values
        mean, spread = features.mean(axis=1), features.std(axis=1)
        spread = np.where(spread > 0, spread, 1.0)
        rows = np.ones((len(features) + 1, features.shape[1]))
        rows[1:] = (features - mean[:, None]) / spread[:, None]
        penalty = np.array([INTERCEPT_PENALTY, *[self.l2] * len(features)])
        fitted = fit_logistic(rows, is_relevant(runs).astype(np.float64), penalty)
        weights = fitted[1:] / spread
        return self.make_fitted(
            FittedLinearFusion,
            runs,
            intercept=round_digits(fitted[0] - weights @ mean),
            weights=tuple(map(round_digits, weights.tolist())),
        )


def fit_logistic(rows: FloatArray, labels: FloatArray, penalty: FloatArray) -> FloatArray:
    """(F,): weights that minimize the log loss plus Σ penalty/2 · w².

    Args:
        rows: Shape (F, N): the features.
        labels: Shape (N,): 1 or 0.
        penalty: Shape (F,): above 0, so that the minimum is unique.
    """
    weights: FloatArray = np.zeros(len(rows))
    loss = _penalized_loss(weights, rows, labels, penalty)
    for _ in range(MOST_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(weights @ rows, -500, 500)))
        slope = rows @ (chance - labels) + penalty * weights
        curvature = (rows * (chance * (1 - chance))) @ rows.T + np.diag(penalty)
        step = np.linalg.solve(curvature, slope)
        better = _penalized_loss(weights - step, rows, labels, penalty)
        while better > loss and np.abs(step).max() > LEAST_GAIN:  # too far: Newton's step halved
            step = step / 2
            better = _penalized_loss(weights - step, rows, labels, penalty)
        gain = loss - better
        if gain > 0:
            weights, loss = weights - step, better
        if gain <= LEAST_GAIN * loss:
            break
    return weights


def _penalized_loss(
    weights: FloatArray, rows: FloatArray, labels: FloatArray, penalty: FloatArray
) -> float:
    odds = weights @ rows
    losses = np.logaddexp(0, odds) - labels * odds
    return float(losses.sum() + (penalty * weights**2).sum() / 2)


def round_digits(value: float) -> float:
    """Ten significant digits: what depends on the machine's arithmetic lies behind them."""
    return float(f"{value:.10g}")


#: The same trees on every machine and in every run, whatever the number of processors.
DETERMINISTIC: Final = {
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}
#: Greater grades gain as much as this one: 2^grade − 1 must stay finite.
GREATEST_GRADE: Final = 30


@fusions.register
class LambdaMART(Trainable):
    """``lambdamart``: boosted regression trees that order the candidates for nDCG.

    Features are those of ``logistic_regression``; the grades are the dataset's, an unjudged
    document has 0. LightGBM fits the trees, in one thread and from a fixed seed.

    Source: Burges, "From RankNet to LambdaRank to LambdaMART: an overview", Microsoft Research
    MSR-TR-2010-82; Ke et al., "LightGBM", NeurIPS 2017. Needs the extra ``learned``.

    Attributes:
        trees: How many.
        leaves: Most leaves of a tree.
        learning_rate: How much each tree adds.
        least_leaf: Fewest training candidates in a leaf.
        seed: Of LightGBM.
    """

    formula = "Σ trees(features), boosted for nDCG"
    source = "Burges 2010; Ke et al. 2017 (LightGBM)"

    method: str = "lambdamart"
    trees: Annotated[int, Field(ge=1, le=10_000)] = 100
    leaves: Annotated[int, Field(ge=2, le=1024)] = 15
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.05
    least_leaf: Annotated[int, Field(ge=1)] = 50
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    tunable = (
        integer("trees", 20, 300, log=True),
        integer("leaves", 4, 63, log=True),
        real("learning_rate", 0.01, 0.2, log=True),
        integer("least_leaf", 5, 500, log=True),
    )

    def fit(self, runs: AlignedRuns) -> FittedLambdaMART:
        """Grow the trees.

        Raises:
            MissingExtraError: LightGBM is not installed.
        """
        library = _import_lightgbm()
        features = candidate_features(runs, runs.sources)
        sizes = np.diff(runs.offsets)
        data = library.Dataset(
            features.values.T,
            label=np.clip(runs.grades, 0, GREATEST_GRADE),
            group=sizes[sizes > 0],
            params={"verbosity": -1, "min_data_in_bin": 1},
        )
        params = {
            "objective": "lambdarank",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.least_leaf,
            "seed": self.seed,
            **DETERMINISTIC,
        }
        booster = library.train(params, data, num_boost_round=self.trees)
        return self.make_fitted(FittedLambdaMART, runs, model=booster.model_to_string())


class FittedLambdaMART(FittedFusion):
    """``lambdamart`` with its trees.

    Attributes:
        model: The trees, as LightGBM writes them.
    """

    model: str

    def compute_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """One term: the sum over all trees."""
        features = candidate_features(runs, self.sources)
        scores: FloatArray = np.zeros(len(runs.documents))
        if len(scores):
            scores[:] = _load_booster(self.model).predict(features.values.T, num_threads=1)
        return ScoreTerms(("trees",), (None,), scores[None], np.ones(len(scores)))


@lru_cache(maxsize=32)
def _load_booster(model: str) -> Any:  # noqa: ANN401 - lightgbm ships no types
    return _import_lightgbm().Booster(model_str=model)


def _import_lightgbm() -> Any:  # noqa: ANN401 - a module
    return import_optional("lightgbm", extra="learned", purpose="lambdamart")
