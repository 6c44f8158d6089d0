"""Families of comparisons: with a baseline, of the best group, of fusions with single sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.config.json_records import OptionalFloat, none_if_nan
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats import comparison
from fusion_bench.stats.inference import (
    PairedRow,
    RowInference,
    find_rivals,
    infer_family,
)
from fusion_bench.stats.intervals import exact_mean, find_limit
from fusion_bench.stats.repeat_variance import (
    RepeatMeans,
    paired_sides,
    repeat_means,
    repeat_variance,
)

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

    def repeat_sides(self, name: str) -> tuple[FloatArray | None, ...]:
        """The values whose spread over repeats enters the difference of a system, each (T, Q)."""
        first, second = (
            self.repeat_lists.get(system, frozenset()) for system in (name, self.baseline)
        )
        return paired_sides(
            self.repeats.get(name),
            self.repeats.get(self.baseline),
            is_shared=not first.isdisjoint(second),
        )

    def repeat_means(self, name: str) -> RepeatMeans:
        """The means of the repeats of each side of a system's difference that has several."""
        return repeat_means(self.repeat_sides(name))


def compare_family(
    tables: Sequence[ComparedValues],
    *,
    min_gain: float = MIN_GAIN,
    seed: int = 0,
    alpha: float = 0.05,
) -> tuple[tuple[comparison.Comparison, ...], ...]:
    """Compare systems with their baselines on one measure of one or several collections.

    The family is all compared systems of all collections. Systems with identical values count
    once.

    Args:
        tables: One a collection.
        min_gain: m: a smaller difference is not worth a change.
        seed: Seed of the draws.
        alpha: Level of p and intervals.

    Returns:
        For each collection one comparison per system but the baseline, in their order.
    """
    differences = [table.differences() for table in tables]
    rows = [
        PairedRow(difference, table.keys, table.repeat_means(name))
        for table, by_name in zip(tables, differences, strict=True)
        for name, difference in by_name.items()
    ]
    limit = find_limit(is_bounded=all(table.is_bounded for table in tables))
    rest = iter(infer_family(rows, seed=seed, alpha=alpha, limit=limit))
    return tuple(
        tuple(
            _describe(table, name, difference, next(rest), min_gain=min_gain, alpha=alpha)
            for name, difference in by_name.items()
        )
        for table, by_name in zip(tables, differences, strict=True)
    )


def compare_with_baseline(
    measure: str,
    values: Mapping[str, FloatArray],
    baseline: str,
    *,
    groups: IntArray | Sequence[str] | None = None,
    is_bounded: bool = False,
    alpha: float = 0.05,
    min_gain: float = MIN_GAIN,
    seed: int = 0,
) -> tuple[comparison.Comparison, ...]:
    """Compare every other system with the baseline; see :func:`compare_family`.

    Args:
        measure: Name of the measure.
        values: Per system, shape (Q,), finite, the same queries in the same order.
        baseline: The system to compare with.
        groups: Shape (Q,): the group of each query; None = every query alone. Draws depend on the
            names of the groups, or on the positions of the queries.
        is_bounded: Values lie in [0, 1].
        alpha: Level of p and intervals.
        min_gain: A smaller difference is not worth a change.
        seed: Seed of the draws.

    Returns:
        One comparison per system but the baseline, in the order of ``values``.
    """
    size = len(values[baseline]) if baseline in values else 0
    keys = tuple(map(str, range(size) if groups is None else groups))
    table = ComparedValues(measure, values, baseline, keys, is_bounded)
    (comparisons,) = compare_family([table], min_gain=min_gain, seed=seed, alpha=alpha)
    return comparisons


def _describe(
    table: ComparedValues,
    name: str,
    difference: FloatArray,
    row: RowInference,
    *,
    min_gain: float,
    alpha: float,
) -> comparison.Comparison:
    """The record of one comparison."""
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    sd = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    share = None
    if table.repeats.keys() & {name, table.baseline}:
        added = repeat_variance(row.repeats)
        share = added / (row.error**2 + added) if added > 0 else 0.0
    return comparison.Comparison(
        measure=table.measure,
        baseline=table.baseline,
        candidate=name,
        baseline_mean=exact_mean(table.values[table.baseline]),
        candidate_mean=exact_mean(table.values[name]),
        difference=row.mean,
        low=row.low,
        high=row.high,
        standard_error=row.error,
        critical_value=row.critical[0] if math.isfinite(row.critical[0]) else math.nan,
        p=row.p,
        answer=comparison.decide_answer(row, changed=wins + losses, min_gain=min_gain, alpha=alpha),
        wins=wins,
        ties=len(difference) - wins - losses,
        losses=losses,
        effect_size=row.mean / sd if sd > 0 else None,
        min_detectable_difference=row.detectable if math.isfinite(row.detectable) else None,
        loss_share=none_if_nan(row.loss_share),
        trial_share=share,
        queries=len(difference),
        groups=row.units,
    )


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


def find_superior(
    table: ComparedValues, *, seed: int = 0, alpha: float = 0.05
) -> dict[str, frozenset[str]]:
    """By system those that it is shown to be worse than, in the family of all pairs.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the draws.
        alpha: 1 − probability that no difference is shown where there is none.
    """

    def find_repeats(name: str, rival: str) -> RepeatMeans:
        return replace(table, baseline=rival).repeat_means(name)

    return find_rivals(
        table.values,
        table.keys,
        seed=seed,
        alpha=alpha,
        repeats=find_repeats if table.repeats else None,
    )


def find_first_group(
    table: ComparedValues, *, seed: int = 0, alpha: float = 0.05
) -> tuple[str, ...]:
    """The systems not shown to be worse than any other, in the family of all pairs.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the draws.
        alpha: 1 − probability that the true best is in it.

    Returns:
        Names in the order of ``table``.
    """
    rivals = find_superior(table, seed=seed, alpha=alpha)
    return tuple(name for name in table.values if not rivals[name])


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
        p: Over the family.
    """

    verdict: FusionVerdict
    fusion: str
    source: str
    p: OptionalFloat


def decide_fusion(
    fusions: Mapping[str, FloatArray],
    sources: Mapping[str, FloatArray],
    keys: tuple[str, ...],
    *,
    seed: int = 0,
    alpha: float = 0.05,
    is_bounded: bool = False,
    repeats: Mapping[tuple[str, str], RepeatMeans] | None = None,
) -> FusionAnswer:
    """Compare every fusion with every single source, as one family.

    Args:
        fusions: Per fusion, shape (Q,); at least one.
        sources: Per source, shape (Q,); at least one.
        keys: The group id of each query.
        seed: Seed of the draws.
        alpha: Level.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        repeats: By fusion and source the means of the repeats of each side that has several;
            without an entry none has.
    """
    pairs = [(fusion, source) for fusion in fusions for source in sources]
    rows = [
        PairedRow(
            comparison.paired_difference(fusions[f], sources[s]),
            keys,
            (repeats or {}).get((f, s), ()),
        )
        for f, s in pairs
    ]
    limit = find_limit(is_bounded=is_bounded)
    by_pair = dict(zip(pairs, infer_family(rows, seed=seed, alpha=alpha, limit=limit), strict=True))
    signs = {pair: np.sign(row.mean) if row.p <= alpha else 0.0 for pair, row in by_pair.items()}

    def highest(values: Mapping[str, FloatArray], names: list[str]) -> str:
        return max(names or list(values), key=lambda name: float(values[name].mean()))

    paying = [f for f in fusions if all(signs[f, s] > 0 for s in sources)]
    losing = [s for s in sources if all(signs[f, s] < 0 for f in fusions)]
    fusion, source = highest(fusions, paying), highest(sources, losing)
    row = by_pair[fusion, source]
    verdict: FusionVerdict = "pays" if paying else "loses" if losing else "not shown"
    return FusionAnswer(
        verdict=verdict,
        fusion=fusion,
        source=source,
        difference=row.mean,
        low=row.low,
        high=row.high,
        p=row.p,
    )
