"""Families of comparisons: with a baseline, of the best group, of fusions with single sources."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from fusion_bench.config.json_records import OptionalFloat, none_if_nan
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.stats import comparison
from fusion_bench.stats.inference import RowInference, find_rivals, infer_family
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.stats.repeat_variance import repeat_variance
from fusion_bench.stats.values import MeasuredValues, Pair, ValueTable

#: A smaller difference is not worth a change, unless an experiment says otherwise.
MIN_GAIN = 0.005


def compare_family(
    pairs: Sequence[Pair], *, min_gain: float = MIN_GAIN, seed: int = 0, alpha: float = 0.05
) -> list[comparison.Comparison]:
    """Compare pairs of systems on one measure of one or several collections.

    The family is all pairs. Pairs with identical differences count once. Where unjudged documents
    contradict an answer, they decide it.

    Args:
        pairs: Candidates, each with its baseline.
        min_gain: m: a smaller difference is not worth a change.
        seed: Seed of the draws.
        alpha: Level of p and intervals.

    Raises:
        ConfigError: Values that cannot be paired.
        DataError: Values that are not finite.
    """
    for pair in pairs:
        _check_pair(pair)
    rows = infer_family(pairs, seed=seed, alpha=alpha)
    return [
        _describe(pair, row, min_gain=min_gain, alpha=alpha)
        for pair, row in zip(pairs, rows, strict=True)
    ]


def compare_tables(
    tables: Sequence[ValueTable], *, min_gain: float, seed: int, alpha: float, every: bool = False
) -> list[list[comparison.Comparison]]:
    """Compare the systems of all collections with their baselines; each measure is a family.

    Args:
        tables: One a collection.
        min_gain: m of the answers.
        seed: Seed of the draws.
        alpha: Level of p and intervals.
        every: Whether every measure answers; by default only the primary one does.

    Returns:
        For each collection the comparisons, by measure and in the order of the systems.
    """
    compared: list[list[comparison.Comparison]] = [[] for _ in tables]
    for index in range(max((len(table.measures) for table in tables), default=0)):
        pairs = [
            (place, pair)
            for place, table in enumerate(tables)
            for measure in table.measures[index : index + 1]
            for pair in table.pairs(measure)
        ]
        family = [pair for _, pair in pairs]
        found = compare_family(family, min_gain=min_gain, seed=seed, alpha=alpha)
        for (place, _), item in zip(pairs, found, strict=True):
            answer = item.answer if every or not index else None
            compared[place].append(item.model_copy(update={"answer": answer}))
    return compared


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

    Raises:
        UnknownNameError: No such baseline.
        ConfigError: Values that cannot be paired.
        DataError: Values that are not finite.
    """
    if baseline not in values:
        raise UnknownNameError("baseline", baseline, values, where=f"compare {measure}")
    keys = tuple(map(str, range(len(values[baseline])) if groups is None else groups))
    systems = {name: {measure: MeasuredValues(array)} for name, array in values.items()}
    bounded = (measure,) if is_bounded else ()
    pairs = ValueTable(systems, baseline, (measure,), keys, bounded).pairs(measure)
    return tuple(compare_family(pairs, min_gain=min_gain, seed=seed, alpha=alpha))


def _describe(
    pair: Pair, row: RowInference, *, min_gain: float, alpha: float
) -> comparison.Comparison:
    """The record of one comparison."""
    difference, share = pair.difference, None
    sd = float(difference.std(ddof=1)) if len(difference) > 1 else 0.0
    if max(pair.counts) > 1:
        added = repeat_variance(row.repeats)
        share = added / (row.error**2 + added) if added > 0 else 0.0
    answer = comparison.decide_answer(row, changed=pair.changed, min_gain=min_gain, alpha=alpha)
    candidate, baseline = pair.names
    return comparison.Comparison(
        measure=pair.measure,
        baseline=baseline,
        candidate=candidate,
        baseline_mean=exact_mean(pair.baseline.values),
        candidate_mean=exact_mean(pair.candidate.values),
        difference=row.mean,
        low=row.low,
        high=row.high,
        standard_error=row.error,
        critical_value=row.critical[0] if math.isfinite(row.critical[0]) else math.nan,
        p=row.p,
        answer=comparison.veto_answer(answer, pair.compare_unjudged(alpha), min_gain),
        wins=pair.wins,
        ties=len(difference) - pair.changed,
        losses=pair.losses,
        effect_size=row.mean / sd if sd > 0 else None,
        min_detectable_difference=row.detectable if math.isfinite(row.detectable) else None,
        loss_share=none_if_nan(row.loss_share),
        trial_share=share,
        queries=len(difference),
        groups=row.units,
    )


def _check_pair(pair: Pair) -> None:
    """Refuse values that cannot be paired or are not finite."""
    shape = pair.baseline.values.shape
    for name, each in zip(pair.names, (pair.candidate, pair.baseline), strict=True):
        where = f"compare {pair.measure}: system {name!r}"
        if each.values.shape != shape or each.values.ndim != 1:
            raise ConfigError(
                f"{where}: values of shape {each.values.shape} cannot be paired with shape {shape} "
                f"of the baseline {pair.names[1]!r}; both need one value per query, for the same "
                "queries"
            )
        wrong = np.flatnonzero(~np.isfinite(each.values))
        if len(wrong):
            value = each.values[wrong[0]]
            raise DataError(f"{where}, query index {wrong[0]}: {value} is not finite")


def find_first_group(table: ValueTable, *, seed: int = 0, alpha: float = 0.05) -> tuple[str, ...]:
    """The systems not shown to be worse than any other on the primary measure, over all pairs.

    Args:
        table: The systems, the baseline like any other.
        seed: Seed of the draws.
        alpha: 1 − probability that the true best is in it.

    Returns:
        Names in the order of ``table``.
    """
    systems = table.values_of(table.measures[0])
    better = find_rivals(systems, table.keys, seed=seed, alpha=alpha)
    return tuple(name for name in systems if not better[name])


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
    pairs: Mapping[tuple[str, str], Pair], *, seed: int = 0, alpha: float = 0.05
) -> FusionAnswer:
    """Compare every fusion with every single source, as one family.

    Args:
        pairs: Every fusion with every source, by their names; at least one.
        seed: Seed of the draws.
        alpha: Level.
    """
    rows = infer_family([*pairs.values()], seed=seed, alpha=alpha)
    by_pair = dict(zip(pairs, rows, strict=True))
    signs = {pair: np.sign(row.mean) if row.p <= alpha else 0.0 for pair, row in by_pair.items()}
    fusions = {fusion: pair.candidate.values for (fusion, _), pair in pairs.items()}
    sources = {source: pair.baseline.values for (_, source), pair in pairs.items()}

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
