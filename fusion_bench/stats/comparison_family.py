"""Families of comparisons: with a baseline, of a first group, of fusions with single sources.

Multiple comparisons with the best (Hsu 1984, "Constrained simultaneous confidence intervals for
multiple comparisons with the best"), in their conservative form: the intervals of all pairs hold
together, so that the true best is left out with a probability of α at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from fusion_bench.config.json_records import OptionalFloat
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats import comparison, repeat_variance, sign_flips
from fusion_bench.stats.corrections import Correction, adjust_holm, default_resamples
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean, exact_mean, t_quantile
from fusion_bench.stats.max_t import (
    FIRST_DRAWS,
    MOST_DRAWS,
    FamilyRow,
    RowResult,
    estimate_row,
    max_t,
)
from fusion_bench.stats.power import detectable_difference, two_sided_p

#: A smaller difference is not worth a change, unless an experiment says otherwise.
MIN_GAIN = 0.005


@dataclass(frozen=True)
class ComparedValues:
    """The systems of one collection on one measure.

    Attributes:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare the others with.
        keys: The group id of each query; its own id where no groups are declared.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        repeats: Of each system with several repeats the values that ``values`` are the means of,
            shape (T, Q).
        repeat_lists: Of each of these systems the lists that differ between its repeats.
    """

    measure: str
    values: Mapping[str, FloatArray]
    baseline: str
    keys: tuple[str, ...]
    is_bounded: bool = False
    repeats: Mapping[str, FloatArray] = field(default_factory=dict)
    repeat_lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def differences(self) -> dict[str, FloatArray]:
        """Per compared system, shape (Q,): candidate − baseline, float noise set to 0.

        Raises:
            UnknownNameError: No such baseline.
            ConfigError: Values that cannot be paired.
            DataError: Values that are not finite.
        """
        if self.baseline not in self.values:
            where = f"compare {self.measure}"
            raise UnknownNameError("baseline", self.baseline, self.values, where=where)
        _check_pairs(self.measure, self.values, self.baseline)
        base = self.values[self.baseline]
        return {
            name: comparison.paired_difference(array, base)
            for name, array in self.values.items()
            if name != self.baseline
        }

    def repeat_terms(self, name: str) -> tuple[repeat_variance.RepeatTerm, ...]:
        """What the repeats of a system and of the baseline add to the variance of its difference.

        Raises:
            ConfigError: Repeats of other queries.
        """
        sides = self.repeat_sides(name)
        if all(side is None for side in sides):
            return ()
        return repeat_variance.make_repeat_terms(sides, number_by_appearance(self.keys)[0])

    def repeat_sides(self, name: str) -> tuple[FloatArray | None, ...]:
        """The values whose spread over repeats enters the difference of a system, each (T, Q)."""
        first, second = (
            self.repeat_lists.get(system, frozenset()) for system in (name, self.baseline)
        )
        return repeat_variance.paired_sides(
            self.repeats.get(name),
            self.repeats.get(self.baseline),
            is_shared=not first.isdisjoint(second),
        )


def compare_family(
    tables: Sequence[ComparedValues],
    *,
    correction: Correction = "max_t",
    min_gain: float = MIN_GAIN,
    seed: int = 0,
    alpha: float = 0.05,
    resamples: int | None = None,
) -> tuple[tuple[comparison.Comparison, ...], ...]:
    """Compare systems with their baselines on the primary measure of one or several collections.

    The family is all compared systems of all collections. Systems with identical values count
    once.

    Args:
        tables: One a collection.
        correction: How p and intervals account for the family.
        min_gain: m: a smaller difference is not worth a change.
        seed: Seed of the flips.
        alpha: Level of p and intervals.
        resamples: Flips to start with, by default 10,000; there are more where a decision is near.

    Returns:
        For each collection one comparison per system but the baseline, in their order.
    """
    differences = [table.differences() for table in tables]
    rows = [
        FamilyRow(difference, table.keys, min_gain, table.repeat_terms(name))
        for table, by_name in zip(tables, differences, strict=True)
        for name, difference in by_name.items()
    ]
    results, _ = _infer_family(
        rows, correction=correction, seed=seed, alpha=alpha, resamples=resamples
    )
    rest = iter(results)
    return tuple(
        tuple(
            _describe(table, name, difference, next(rest), alpha=alpha, is_primary=True)
            for name, difference in by_name.items()
        )
        for table, by_name in zip(tables, differences, strict=True)
    )


def compare_alone(
    table: ComparedValues, *, alpha: float = 0.05
) -> tuple[comparison.Comparison, ...]:
    """Compare systems on a measure that decides nothing: t intervals, not adjusted.

    Args:
        table: The systems.
        alpha: 1 − coverage of each interval.

    Returns:
        One comparison per system but the baseline, in their order.
    """
    comparisons = []
    for name, difference in table.differences().items():
        estimate = estimate_mean(difference, number_by_appearance(table.keys)[0], alpha=alpha)
        estimate = repeat_variance.add_repeat_variance(
            estimate, table.repeat_terms(name), alpha=alpha
        )
        critical = math.nan
        if not math.isnan(estimate.freedom):
            critical = t_quantile(estimate.freedom, 1 - alpha / 2)
        row = RowResult(
            estimate, 1.0, False, estimate.low, estimate.high, critical, "clear", False, "clear"
        )
        comparisons.append(_describe(table, name, difference, row, alpha=alpha, is_primary=False))
    return tuple(comparisons)


#: What makes two rows the same: group ids, differences, and what repeats add.
_RowContent: TypeAlias = tuple[tuple[str, ...], bytes, tuple[repeat_variance.RepeatTerm, ...]]


def _infer_family(
    rows: Sequence[FamilyRow],
    *,
    correction: Correction = "max_t",
    seed: int = 0,
    alpha: float = 0.05,
    resamples: int | None = None,
    most_draws: int = MOST_DRAWS,
) -> tuple[tuple[RowResult, ...], int]:
    """p, interval and critical value of every row of a family.

    Args:
        rows: The family; identical rows count once.
        correction: How the number of comparisons is accounted for.
        seed: Seed of the signs.
        alpha: Level.
        resamples: Draws to start with; 10,000 by default, and for Holm at least 200 a comparison.
        most_draws: Draws at most; what is not clear then is ``open``.

    Returns:
        The rows, and the draws: the most of any row.

    Raises:
        UnknownNameError: There is no such correction.
        ConfigError: A level, seed or number of draws that cannot be used.
    """
    if correction not in get_args(Correction):
        raise UnknownNameError("correction", correction, get_args(Correction))
    if not rows:
        return (), 0
    if correction == "max_t":
        family = max_t(
            rows,
            seed=seed,
            alpha=alpha,
            first_draws=resamples or FIRST_DRAWS,
            most_draws=most_draws,
        )
        return family.rows, family.draws
    contents = [(row.keys, (row.difference + 0.0).tobytes(), row.repeat_terms) for row in rows]
    distinct = dict(zip(contents, rows, strict=True))
    draws = max(resamples or 0, default_resamples(len(distinct) if correction == "holm" else 1))
    families = {
        content: max_t(
            [row], seed=seed, alpha=alpha, first_draws=draws, most_draws=max(draws, most_draws)
        )
        for content, row in distinct.items()
    }
    results = {content: family.rows[0] for content, family in families.items()}
    if correction == "holm":
        results = _adjust(results, alpha)
    return tuple(results[content] for content in contents), max(
        family.draws for family in families.values()
    )


def _adjust(results: dict[_RowContent, RowResult], alpha: float) -> dict[_RowContent, RowResult]:
    """Holm's p; rows that equal the baseline are no comparisons.

    The critical value is that of the smallest threshold, α ÷ rows, so that the detectable
    difference is that of the worst case.
    """
    tested = [key for key, row in results.items() if row.estimate.standard_error > 0]
    adjusted = adjust_holm(np.array([results[key].p for key in tested])).tolist() if tested else []
    for key, p in zip(tested, adjusted, strict=True):
        row = results[key]
        critical = t_quantile(row.estimate.freedom, 1 - alpha / (2 * len(tested)))
        results[key] = replace(row, p=p, critical_value=max(row.critical_value, critical))
    return results


def compare_with_baseline(
    measure: str,
    values: Mapping[str, FloatArray],
    baseline: str,
    *,
    groups: IntArray | Sequence[str] | None = None,
    primary: bool,
    is_bounded: bool = False,
    alpha: float = 0.05,
    correction: Correction = "max_t",
    min_gain: float = MIN_GAIN,
    seed: int = 0,
    resamples: int | None = None,
) -> tuple[comparison.Comparison, ...]:
    """Compare every other system with the baseline; see :func:`compare_family`.

    Args:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare with.
        groups: Shape (Q,): the group of each query; None = every query alone. The signs are drawn
            from the names of the groups, or from the position of a query.
        primary: Whether this is the primary measure; only it gets adjusted p-values and answers.
        is_bounded: Values lie in [0, 1].
        alpha: Level of p and intervals.
        correction: How they account for the number of systems.
        min_gain: A smaller difference is not worth a change.
        seed: Seed of the flips.
        resamples: Flips to start with.

    Returns:
        One comparison per system but the baseline, in the order of ``values``.
    """
    size = len(values[baseline]) if baseline in values else 0
    keys = tuple(map(str, range(size) if groups is None else groups))
    table = ComparedValues(measure, values, baseline, keys, is_bounded)
    if not primary:
        return compare_alone(table, alpha=alpha)
    (comparisons,) = compare_family(
        [table],
        correction=correction,
        min_gain=min_gain,
        seed=seed,
        alpha=alpha,
        resamples=resamples,
    )
    return comparisons


def _describe(
    table: ComparedValues,
    name: str,
    difference: FloatArray,
    row: RowResult,
    *,
    alpha: float,
    is_primary: bool,
) -> comparison.Comparison:
    """The record of one comparison."""
    estimate = row.estimate
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    low, high = _finite_ends(row, is_bounded=table.is_bounded)
    answer, skew = None, None
    if is_primary:
        codes = number_by_appearance(table.keys)[0]
        answer = comparison.decide_answer(row, changed=wins + losses, alpha=alpha)
        answer, skew = comparison.check_skew(answer, difference, codes, alpha=alpha)
    critical, detectable = math.nan, None
    if math.isfinite(row.critical_value):
        critical, error = row.critical_value, estimate.standard_error
        detectable = detectable_difference(error, critical, freedom=estimate.freedom)
    return comparison.Comparison(
        measure=table.measure,
        baseline=table.baseline,
        candidate=name,
        baseline_mean=exact_mean(table.values[table.baseline]),
        candidate_mean=exact_mean(table.values[name]),
        difference=estimate.mean,
        low=low,
        high=high,
        standard_error=estimate.standard_error,
        freedom=estimate.freedom,
        critical_value=critical,
        p=two_sided_p(estimate.mean, estimate.standard_error, estimate.freedom),
        p_adjusted=row.p if is_primary else None,
        p_floor=is_primary and row.p_floor,
        answer=answer,
        skew=skew,
        few_changes=comparison.has_few_changes(wins + losses, estimate.groups),
        wins=wins,
        ties=estimate.queries - wins - losses,
        losses=losses,
        effect_size=estimate.mean / estimate.sd if estimate.sd > 0 else None,
        min_detectable_difference=detectable,
        trial_share=_repeat_share(table, name, estimate),
        queries=estimate.queries,
        groups=estimate.groups,
    )


def _finite_ends(row: RowResult, *, is_bounded: bool) -> tuple[float, float]:
    """The ends of the interval of a row, within ±1 where values lie in [0, 1]; NaN = no end."""
    low, high = row.low, row.high
    if is_bounded:
        low, high = max(low, -1.0), min(high, 1.0)
    return low if math.isfinite(low) else math.nan, high if math.isfinite(high) else math.nan


def _repeat_share(table: ComparedValues, name: str, estimate: MeanEstimate) -> float | None:
    """The part of the variance of a difference that repeats add; None with one repeat each."""
    if not table.repeats.keys() & {name, table.baseline}:
        return None
    added = estimate.repeat_variance
    return added / estimate.standard_error**2 if added > 0 else 0.0


def _check_pairs(measure: str, values: Mapping[str, FloatArray], baseline: str) -> None:
    """Refuse values that cannot be paired or are not finite."""
    shape = values[baseline].shape
    for name, array in values.items():
        where = f"compare {measure}: system {name!r}"
        if array.shape != shape or array.ndim != 1:
            raise ConfigError(
                f"{where}: values of shape {array.shape} cannot be paired with shape {shape} of "
                f"the baseline {baseline!r}; both need one value per query, for the same queries"
            )
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            raise DataError(f"{where}, query index {wrong[0]}: {array[wrong[0]]} is not finite")


#: Draws × pairs at most, and draws at least.
MOST_NUMBERS, LEAST_DRAWS = 40_000_000, 1_000


def find_first_group(
    table: ComparedValues, *, seed: int = 0, alpha: float = 0.05, draws: int = FIRST_DRAWS
) -> tuple[str, ...]:
    """The systems not shown to be worse than any other, in the family of all pairs.

    Each system's values are flipped once; the t of a pair follows from both. Only residuals are
    flipped, which hold whatever the true differences are.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the signs.
        alpha: 1 − probability that the true best is in it.
        draws: Flips; fewer where there are very many pairs.

    Returns:
        Names in the order of ``table``; every name where nothing tells the spread.
    """
    rivals = _list_superior(table, seed=seed, alpha=alpha, draws=draws)
    return tuple(name for name, others in zip(table.values, rivals, strict=True) if not any(others))


def find_superior(
    table: ComparedValues, *, seed: int = 0, alpha: float = 0.05
) -> dict[str, frozenset[str]]:
    """By system those that it is shown to be worse than, in the family of all pairs.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the signs.
        alpha: 1 − probability that no difference is shown where there is none.
    """
    rivals = _list_superior(table, seed=seed, alpha=alpha, draws=FIRST_DRAWS)
    return {name: frozenset(others) for name, others in zip(table.values, rivals, strict=True)}


def _list_superior(
    table: ComparedValues, *, seed: int, alpha: float, draws: int
) -> Iterator[Iterator[str]]:
    """For each system the names of those that it is shown to be worse than, the clearest first."""
    names = tuple(table.values)
    statistics = sign_flips.prepare_flips([table.values[name] for name in names], table.keys)
    if len(names) < 2 or not statistics.ids:
        yield from (iter(()) for _ in names)
        return
    first, second = np.triu_indices(len(names), 1)
    squares = _pair_squares(np.stack(list(table.values.values())), table.keys)[first, second]
    means = (statistics.means[first] - statistics.means[second]) * statistics.queries
    observed = np.where(
        squares > 0, means**2 / np.maximum(means**2 + squares, comparison.NOISE**2), 0.0
    )
    draws = min(draws, max(LEAST_DRAWS, MOST_NUMBERS // len(first)))
    drawn = _flip_pairs(statistics, squares, statistics.keys(seed), draws)
    largest = np.append(drawn, observed.max())
    flipped = sign_flips.FlippedShares(largest, largest, is_exact=False)
    shares = np.zeros((len(names), len(names)))
    shares[first, second] = np.where(means < 0, observed, 0.0)  # that the first is worse
    shares[second, first] = np.where(means > 0, observed, 0.0)
    size = len(first) if table.repeats else 1
    critical = flipped.critical(alpha)

    def superior(i: int) -> Iterator[str]:
        rivals = [j for j in np.argsort(-shares[i], kind="stable") if shares[i, j] >= critical]
        for j in rivals:
            row = _pair_row(table, names[i], names[j])
            if estimate_row(row, shares[i, j], flipped, alpha, size).p <= alpha:
                yield names[j]

    yield from map(superior, range(len(names)))


def _pair_row(table: ComparedValues, name: str, rival: str) -> FamilyRow:
    """The difference of a system from a rival, with what their repeats add."""
    terms = replace(table, baseline=rival).repeat_terms(name)
    difference = comparison.paired_difference(table.values[name], table.values[rival])
    return FamilyRow(difference, table.keys, repeat_terms=terms)


def _pair_squares(values: FloatArray, keys: tuple[str, ...]) -> FloatArray:
    """(S, S): Σ w_g (D_g − n_g m)² of each pair, N² times the variance of its mean."""
    codes = number_by_appearance(keys)[0]
    order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
    starts, queries = np.cumsum(sizes) - sizes, len(codes)
    weights, squares = queries / (queries - sizes), np.zeros((len(values), len(values)))
    for i, row in enumerate(values[:-1]):
        differences = comparison.paired_difference(row, values[i + 1 :])
        residuals = differences - differences.mean(axis=1, keepdims=True)
        sums = np.add.reduceat(residuals[:, order], starts, axis=1)
        squares[i, i + 1 :] = (weights * sums**2).sum(axis=1)
    squares[squares <= comparison.NOISE**2 * queries] = 0.0
    return squares


def _flip_pairs(
    statistics: sign_flips.FlippedStatistics,
    squares: FloatArray,
    keys: NDArray[np.uint64],
    draws: int,
) -> FloatArray:
    """(draws,): the largest t² / (1 + t²) of the residuals of all pairs after each flip."""
    first, second = np.triu_indices(len(statistics.means), 1)
    step = max(64, sign_flips.BLOCK_NUMBERS // (len(keys) + 8 * len(first)) // 64 * 64)
    values = []
    for start in range(0, draws, step):
        flips = sign_flips.draw_flips(keys, start, min(start + step, draws))
        means, weighted = (sums[first] - sums[second] for sums in statistics.flip_residuals(flips))
        values.append(statistics.to_shares(means, weighted, squares).max(axis=0))
    return np.concatenate(values)


#: The family is large, and one verdict is drawn from it: what is open then is not shown.
MOST_FUSION_DRAWS = 160_000
FusionVerdict: TypeAlias = Literal["pays", "loses", "not shown", "unjudged decide"]


class FusionAnswer(comparison.MeanDifference):
    """What the family of fusions × sources shows, by the difference of one of its pairs.

    Attributes:
        verdict: ``pays``: some fusion's interval against every source lies above 0. ``loses``:
            some source's interval against every fusion does. Else ``not shown``. Where unjudged
            documents contradict either, which a report tells, ``unjudged decide``.
        fusion: The fusion that pays; else the one with the highest mean.
        source: The source that no fusion reaches; else the one with the highest mean.
        difference: Mean of that fusion − that source.
        low: Lower end of its interval, which holds together with those of the whole family.
        high: Upper end.
        p_adjusted: Over the family.
    """

    verdict: FusionVerdict
    fusion: str
    source: str
    p_adjusted: OptionalFloat


def decide_fusion(
    fusions: Mapping[str, FloatArray],
    sources: Mapping[str, FloatArray],
    keys: tuple[str, ...],
    *,
    correction: Correction = "max_t",
    seed: int = 0,
    alpha: float = 0.05,
    is_bounded: bool = False,
    repeat_terms: Mapping[tuple[str, str], tuple[repeat_variance.RepeatTerm, ...]] | None = None,
) -> FusionAnswer:
    """Compare every fusion with every single source, as one family.

    Args:
        fusions: Per fusion, shape (Q,); at least one.
        sources: Per source, shape (Q,); at least one.
        keys: The group id of each query.
        correction: How the size of the family is accounted for.
        seed: Seed of the flips.
        alpha: Level.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        repeat_terms: What the repeats of a fusion and of a source add to the variance of their
            difference; without an entry nothing.
    """
    terms = repeat_terms or {}
    pairs = [(fusion, source) for fusion in fusions for source in sources]
    rows = [
        FamilyRow(
            comparison.paired_difference(fusions[f], sources[s]),
            keys,
            repeat_terms=terms.get((f, s), ()),
        )
        for f, s in pairs
    ]
    results, _ = _infer_family(
        rows, correction=correction, seed=seed, alpha=alpha, most_draws=MOST_FUSION_DRAWS
    )
    by_pair = dict(zip(pairs, results, strict=True))
    signs = {pair: _shown_sign(row, alpha) for pair, row in by_pair.items()}

    def highest(values: Mapping[str, FloatArray], names: list[str]) -> str:
        return max(names or list(values), key=lambda name: float(values[name].mean()))

    paying = [f for f in fusions if all(signs[f, s] > 0 for s in sources)]
    losing = [s for s in sources if all(signs[f, s] < 0 for f in fusions)]
    fusion, source = highest(fusions, paying), highest(sources, losing)
    row = by_pair[fusion, source]
    low, high = _finite_ends(row, is_bounded=is_bounded)
    verdict: FusionVerdict = "pays" if paying else "loses" if losing else "not shown"
    return FusionAnswer(
        verdict=verdict,
        fusion=fusion,
        source=source,
        difference=row.estimate.mean,
        low=low,
        high=high,
        p_adjusted=row.p,
    )


def _shown_sign(row: RowResult, alpha: float) -> int:
    """The sign of a difference that is shown; 0 = none is."""
    if row.p > alpha or row.decision == "open":
        return 0
    return 1 if row.estimate.mean > 0 else -1
