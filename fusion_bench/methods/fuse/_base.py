"""The contract of a fusion method: its numbers by source, its aliases, its form for the engine.

A fusion of one of these forms is evaluated by counting instead of sorting. Scores come from the
same expressions as :meth:`Fusion.fuse`, bit by bit; of two forms the batch engine computes fewer of
them, and any other method has the form :class:`CandidateScores`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

import numpy as np
from pydantic import Field, PlainSerializer, model_validator

from fusion_bench.config.models import Weight
from fusion_bench.config.parameters import Parameter, real
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.ordering import FloatArray, IntArray, choose_values, sum_terms
from fusion_bench.errors import AlignmentError, ConfigError

CONVEX: Final = {"method": "weighted_score", "normalize": "min_max", "missing": "zero"}

#: Name in lower case → configuration; a parameter that is given replaces the alias's. ``sum`` to
#: ``wsum`` without a prefix are the names of ranx.
ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "anz": {"method": "comb_anz"},
    "borda_fuse": {"method": "borda"},
    "bordafuse": {"method": "borda"},
    "combanz": {"method": "comb_anz"},
    "combgmnz": {"method": "comb_gmnz"},
    "combmax": {"method": "comb_max"},
    "combmed": {"method": "comb_med"},
    "combmin": {"method": "comb_min"},
    "combmnz": {"method": "comb_mnz"},
    "combsum": {"method": "comb_sum"},
    "condorcet_fuse": {"method": "condorcet"},
    "convex": CONVEX,
    "convex_combination": CONVEX,
    "distribution_based_score_fusion": {"method": "dbsf"},
    "gmnz": {"method": "comb_gmnz"},
    "inverse_square_rank": {"method": "isr"},
    "log_odds_conjunction": {"method": "log_odds"},
    "max": {"method": "comb_max"},
    "med": {"method": "comb_med"},
    "min": {"method": "comb_min"},
    "mnz": {"method": "comb_mnz"},
    "rank_biased_centroid": {"method": "rbc"},
    "reciprocal_rank_fusion": {"method": "rrf"},
    "score_max": {"method": "max_score"},
    "sum": {"method": "comb_sum"},
    "w_bordafuse": {"method": "borda"},
    "w_condorcet": {"method": "condorcet"},
    "weighted_borda": {"method": "borda"},
    "weighted_bordafuse": {"method": "borda"},
    "weighted_condorcet": {"method": "condorcet"},
    "wmnz": {"method": "comb_mnz"},
    "wsum": {"method": "weighted_sum"},
}


#: Fusions whose scores a view remembers at least, and how many scores in all if that is more.
SCORES_KEPT, SCORE_BUDGET = 8, 4_000_000


@dataclass(frozen=True, eq=False)
class RankSum:
    """A sum of terms that depend on ranks alone, over one divisor.

    Attributes:
        columns: (C,): rows of the sources that each term looks at; their best rank counts.
        tables: (C, D+1): the term at each rank up to D; at index 0, where none returned it.
        divisor: What the correctly rounded sum is divided by; above 0.
        ceiling: Displayed scores are clamped to it.
    """

    columns: tuple[tuple[int, ...], ...]
    tables: FloatArray
    divisor: float
    ceiling: float = np.inf

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        terms = [
            table[best_ranks(np.array([runs.ranks[s][candidates] for s in column]))]
            for column, table in zip(self.columns, self.tables, strict=True)
        ]
        return np.asarray(sum_terms(np.array(terms)) / self.divisor)


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """Σ w_s·x_s / Σ w_s over the sources whose score for the document counts.

    Attributes:
        key: Two fusions of one key have the same features on the same runs.
        normalize: Computes (S, N) scores; NaN where a source did not return the document.
        absent: x_s of what the source did not return, one for all or computed, (S, Q); NaN = none.
        weights: (S,): above 0.
        ceiling: Displayed scores are clamped to it.
        reads_ranks: Whether the features may depend on more than the scores of each list.
    """

    key: str
    normalize: Callable[[], FloatArray]
    absent: Callable[[], FloatArray] | float
    weights: FloatArray
    ceiling: float = np.inf
    reads_ranks: bool = True

    @cached_property
    def normalized(self) -> FloatArray:
        """(S, N): the scores."""
        return self.normalize()

    @property
    def is_complete(self) -> bool:
        """Whether every source counts for every document."""
        return isinstance(self.absent, float) and not np.isnan(self.absent)

    def features(self, runs: AlignedRuns, candidates: IntArray | slice) -> FloatArray:
        """(S, …): the x_s of these candidates; NaN = does not count."""
        scores = np.array([row[candidates] for row in self.normalized])
        if isinstance(self.absent, float):
            is_said = ~np.isnan(scores)
            return choose_values(is_said, scores, self.absent) if self.is_complete else scores
        absent = self.absent()[:, runs.query_index[candidates]]
        return choose_values(~np.isnan(scores), scores, absent)

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        features = self.features(runs, candidates)
        present = ~np.isnan(features)
        weights = self.weights[:, None]
        total = sum_terms(np.where(present, weights * features, 0.0))
        return np.asarray(total / sum_terms(np.where(present, weights, 0.0)))


@dataclass(frozen=True, eq=False)
class CandidateScores:
    """Scores that :meth:`Fusion.fuse` computes, all of them at once.

    Attributes:
        key: Two fusions of one key have the same scores on the same runs.
        compute: Computes the (N,) scores.
        ceiling: Displayed scores are clamped to it.
    """

    key: str
    compute: Callable[[], FloatArray]
    ceiling: float = np.inf

    def all_scores(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the scores, remembered."""
        keep = max(SCORES_KEPT, SCORE_BUDGET // max(len(runs.documents), 1))
        return runs.cache.lookup(CandidateScores.all_scores, self.key, self.compute, keep)

    def scores(self, runs: AlignedRuns, candidates: IntArray) -> FloatArray:
        """(n,): what :meth:`Fusion.fuse` gives these candidates, to the last bit."""
        return np.asarray(self.all_scores(runs)[candidates])


def best_ranks(ranks: IntArray) -> IntArray:
    """(n,): the best of (C, n) ranks; 0 where all are 0."""
    if len(ranks) == 1:
        return np.asarray(ranks[0])
    # Without a sign, one less than 0 is the greatest number there is.
    best = np.full(ranks.shape[1:], np.iinfo(np.uint64).max, dtype=np.uint64)
    for row in ranks:
        np.minimum(best, np.subtract(row, 1).view(np.uint64), out=best)
    return np.asarray(best.view(np.int64) + 1)


EngineForm: TypeAlias = RankSum | WeightedMean | CandidateScores


Roles = Sequence[frozenset[str]]


#: For a field that is a number or a mapping: a whole number stays one when it is written.
AS_GIVEN: Final = PlainSerializer(lambda value: value)


def match_sources(
    field: str,
    keys: Iterable[str],
    sources: Sequence[str],
    roles: Roles,
    needed: Iterable[str] = (),
) -> list[str | None]:
    """The key that fits each source, by its name or by one of its roles; None = no key does.

    Args:
        field: What the keys belong to, for the message.
        keys: Names and roles.
        sources: (S,).
        roles: Of each source, (S,).
        needed: Those of the keys that must fit a source.

    Raises:
        ConfigError: Two keys fit one source, or a needed one fits none.
    """
    listed = list(keys)
    matched: list[str | None] = []
    for name, role in zip(sources, roles, strict=True):
        fitting = [key for key in listed if key == name or key in role]
        if len(fitting) > 1:
            raise ConfigError(
                f"{field}: {' and '.join(map(repr, fitting))} both fit source {name!r}: keep one"
            )
        matched.append(fitting[0] if fitting else None)
    for key in needed:
        if key not in matched:
            known = sorted({*sources, *(role for names in roles for role in names)})
            raise ConfigError(
                f"{field}: {key!r} fits no source in use (names and roles in use: "
                f"{', '.join(known)})"
            )
    return matched


#: Power of a common factor of all weights that multiplies every score; None = no such power.
Homogeneity: TypeAlias = Literal[0, 1, None]

#: Greatest weight that a search tries.
GREATEST_WEIGHT = 2.0


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """The correctly rounded sum of the terms over the divisor is the score, to the last bit.

    Attributes:
        labels: What each of the T terms is.
        sources: The row of the source that a term belongs to; None = of no single source.
        terms: Shape (T, N); 0 where a term adds nothing.
        divisor: Shape (N,), or one number for all.
    """

    labels: tuple[str, ...]
    sources: tuple[int | None, ...]
    terms: FloatArray
    divisor: FloatArray

    def names(self, sources: Sequence[str]) -> tuple[str, ...]:
        """(T,): the name of each term; see :func:`name_term`.

        Args:
            sources: The fused sources.
        """
        owners = (None if row is None else sources[row] for row in self.sources)
        return tuple(map(name_term, self.labels, owners))

    @property
    def scores(self) -> FloatArray:
        """(N,): the sum of the terms over the divisor.

        Raises:
            AlignmentError: A sum is greater than any number.
        """
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # math.fsum says so below
                return np.asarray(sum_terms(self.terms) / self.divisor)
        except OverflowError:
            problem = "fused scores are greater than any number: lower weights, or rescale scores"
            raise AlignmentError(problem) from None


def name_term(label: str, source: str | None) -> str:
    """Label of a term and the source that it belongs to, once; None = of no single source."""
    return label if source in {None, label} else f"{label} {source}"


class Fusion(Method):
    """Gives every candidate of every query one score; higher is better.

    A method needs ``fuse`` alone::

        @fusions.register
        class CombMax(Fusion):
            \"\"\"``comb_max``: the greatest score of any source.\"\"\"

            source: ClassVar[str] = "Fox and Shaw, Combination of multiple searches, 1994"

            method: str = "comb_max"

            def fuse(self, runs: AlignedRuns) -> FloatArray:
                return np.nanmax(runs.scores, axis=0)

    Everything else has a default and is worth overriding for one purpose each:

    - ``formula``, ``source``: what the table of methods prints;
    - ``source_weights``, or deriving from :class:`WeightedFusion`: sources of different weight;
    - ``per_source``: parameters that may be a mapping by source name or role;
    - ``tunable``, ``space``, ``presets``: tuning;
    - ``score_terms``: an explanation of a score by its terms;
    - ``max_possible``: blends with ``retrieval: fused_max_possible``;
    - ``display_scores``: scores that are clamped after the order was decided;
    - ``engine_form``: faster evaluation by the batch engine;
    - ``weight_scale_invariant``, ``weight_homogeneity``, ``keeps_single_list``: what the contract
      tests check, and what tuning may conclude.

    Attributes:
        per_source: Parameter that may differ per source → the number of a source that its mapping
            does not name.
        homogeneity: What :attr:`weight_homogeneity` says, unless parameters change it.
        reorders: What :attr:`keeps_single_list` denies, unless parameters change it.
        ties: How the engine whose method this is orders equal scores; None = as the experiment
            says.
        tunable: Parameters of its own fields that a search varies.
    """

    per_source: ClassVar[Mapping[str, float]] = {}
    homogeneity: ClassVar[Homogeneity] = None
    reorders: ClassVar[bool] = False
    ties: ClassVar[Ties | None] = None
    tunable: ClassVar[tuple[Parameter, ...]] = ()

    @abstractmethod
    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the score that decides the order.

        Args:
            runs: Only sources that take part (:meth:`source_weights` above 0), so that every
                candidate was returned by at least one of them.
        """

    def max_possible(self, runs: AlignedRuns) -> FloatArray:
        """(Q,): no document can score higher, whatever its ranks; inf = not known."""
        return np.full(len(runs.queries), np.inf)

    def source_weights(
        self,
        sources: Sequence[str],
        roles: Sequence[frozenset[str]],  # noqa: ARG002 - weighted methods read it
    ) -> FloatArray:
        """(S,): the weight of each source; one of weight 0 takes no part at all.

        Raises:
            ConfigError: The sources do not fit the method.
        """
        return np.ones(len(sources))

    def source_numbers(
        self, field: str, sources: Sequence[str], roles: Sequence[frozenset[str]]
    ) -> FloatArray:
        """(S,): the number of each source, of a parameter that :attr:`per_source` names.

        Raises:
            ConfigError: Two keys fit one source; one that fits no source has no effect.
        """
        value, default = getattr(self, field), self.per_source[field]
        if not isinstance(value, Mapping):
            return np.full(len(sources), float(value))
        matched = match_sources(field, value, sources, roles)
        return np.array([default if key is None else value[key] for key in matched], np.float64)

    def check_sources(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> None:
        """Refuse sources that do not fit the parameters.

        Args:
            sources: All of a system's sources, those of weight 0 too, (S,).
            roles: Of each source, (S,).

        Raises:
            ConfigError: A weight or a number per source fits no source, or two fit one.
        """
        self.source_weights(sources, roles)
        for field in self.per_source:
            if isinstance(numbers := getattr(self, field), Mapping):
                match_sources(field, numbers, sources, roles, needed=numbers)

    def display_scores(self, scores: FloatArray) -> FloatArray:
        """(N,): each score as it is shown and blended; ``scores`` decided the order."""
        return scores

    def engine_form(self, runs: AlignedRuns) -> EngineForm | None:
        """The score in a form that the batch engine evaluates; None = there is no such form.

        By default the scores of :meth:`fuse`; none where displayed scores are others.

        Args:
            runs: Only sources that take part, as for :meth:`fuse`.
        """
        if type(self).display_scores is not Fusion.display_scores:
            return None
        model = type(self)
        key = f"{model.__module__}.{model.__qualname__} {self.model_dump_json()}"
        return CandidateScores(key, partial(self.fuse, runs))

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """What can be tuned, with paths relative to the fusion.

        By default :attr:`tunable`, with one parameter a source for a field that differs per source.

        Args:
            sources: Names of the sources that it fuses.
        """
        parameters: list[Parameter] = []
        for each in self.tunable:
            is_split = isinstance(getattr(self, each.path), Mapping)
            paths = [f"{each.path}.{name}" for name in sources] if is_split else [each.path]
            parameters += (replace(each, path=path) for path in paths)
        return tuple(parameters)

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score; by default one, the score itself."""
        scores = self.fuse(runs)
        return ScoreTerms(("fused score",), (None,), scores[None], np.ones(len(scores)))

    @property
    def weight_homogeneity(self) -> Homogeneity:
        """Scaling all weights by f scales displayed and greatest scores by f to this power."""
        return self.homogeneity

    @property
    def weight_scale_invariant(self) -> bool:
        """Whether scaling all weights by one factor changes no rank."""
        return self.weight_homogeneity is not None

    @property
    def keeps_single_list(self) -> bool:
        """Whether a single list, ranked by its scores, comes out in its own order."""
        return not self.reorders


class WeightedFusion(Fusion):
    """A fusion whose sources have weights.

    Attributes:
        weights: By source name or role, never by position; a source that is not named weighs 1.
    """

    weights: dict[str, Weight] = Field(default_factory=dict)

    def space(self, sources: Sequence[str]) -> tuple[Parameter, ...]:
        """The method's own parameters, and the weight of each source; a single one needs none."""
        own, weighted = super().space(sources), sources if len(sources) > 1 else ()
        return (*own, *(real(f"weights.{name}", 0.0, GREATEST_WEIGHT) for name in weighted))

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights, each source's by its name or by one of its roles.

        Raises:
            ConfigError: A weight fits no source, two fit one source, or none is above 0.
        """
        needed = [key for key, weight in self.weights.items() if weight > 0]  # 0: a source is off
        matched = match_sources("weights", self.weights, sources, roles, needed)
        weights = np.array([1.0 if key is None else self.weights[key] for key in matched])
        if not (weights > 0).any():
            raise ConfigError("weights: every source weighs 0: at least one must weigh more")
        return weights


fusions: MethodRegistry[Fusion] = MethodRegistry(
    *("fusion method", "fusion_bench.methods.fuse", "fusion_bench.fusions", Fusion, ALIASES),
    adapter="fusion_bench.methods.own_functions:FunctionFusion",
    listed_by="fusion-bench methods",
)
fusions.first = ("rrf", "rrf_v2", "weighted_score", "weighted_sum", "comb_sum", "comb_mnz")


SEMANTIC = "semantic"
#: The role of a search by words.
KEYWORD = "keyword"


class AlphaWeightedFusion(WeightedFusion):
    """A fusion whose weights one number may state.

    Attributes:
        alpha: The weight of the only source of role ``semantic``; the only other source weighs
            1 - alpha. None = ``weights`` states them.
    """

    hidden_if_none = frozenset({"alpha"})

    alpha: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _check_one_kind_of_weights(self) -> AlphaWeightedFusion:
        if self.alpha is not None and self.weights:
            raise ValueError("alpha and weights exclude each other: keep one")
        return self

    def source_weights(self, sources: Sequence[str], roles: Sequence[frozenset[str]]) -> FloatArray:
        """(S,): weights by ``alpha`` or ``weights``.

        Raises:
            ConfigError: The sources do not fit.
        """
        if self.alpha is None:
            return super().source_weights(sources, roles)
        are_semantic = [SEMANTIC in names for names in roles]
        weights = np.where(are_semantic, self.alpha, 1 - self.alpha)
        is_pair = len(sources) == 2 and sum(are_semantic) == 1
        is_rest_of_pair = len(sources) == 1 and weights[0] == 1  # the other one weighs 0
        if not (is_pair or is_rest_of_pair):
            listed = ", ".join(
                f"{source} ({', '.join(sorted(names)) or 'no role'})"
                for source, names in zip(sources, roles, strict=True)
            )
            raise ConfigError(
                f"alpha needs two sources, one of them of role {SEMANTIC!r} (sources: {listed}): "
                "use weights: {SOURCE: WEIGHT, …}"
            )
        return weights


class TermFusion(Fusion):
    """A fusion that states its :meth:`score_terms`; the score is their sum over the divisor."""

    @abstractmethod
    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """The terms of the score; those of a source stand in its row."""

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the correctly rounded sum of the terms, over the divisor."""
        return self.score_terms(runs).scores


def make_source_terms(
    runs: AlignedRuns, terms: FloatArray, divisor: FloatArray | float = 1.0
) -> ScoreTerms:
    """Terms that each belong to one source.

    Args:
        runs: The view.
        terms: (S, N).
        divisor: One for all, or (N,).
    """
    divisors = np.broadcast_to(np.asarray(divisor, dtype=np.float64), (len(runs.documents),))
    return ScoreTerms(runs.sources, tuple(range(len(runs.sources))), terms, divisors)


class SourceSumFusion(TermFusion):
    """A fusion that states its :meth:`source_terms`; the score is their sum."""

    @abstractmethod
    def source_terms(self, runs: AlignedRuns) -> FloatArray:
        """(S, N): what each source adds to the score of each candidate."""

    def score_terms(self, runs: AlignedRuns) -> ScoreTerms:
        """A term a source."""
        return make_source_terms(runs, self.source_terms(runs))
