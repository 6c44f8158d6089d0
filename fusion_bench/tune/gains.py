"""Gains over the default, over untuned systems: intervals, the verdicts of a run as a family."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from fusion_bench.checks.completion_bounds import QueryBounds, find_system_bounds
from fusion_bench.checks.obstacles import refuse_obstacles
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.data.records import drop_final
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.tuning_records import FloorKind, FloorRow, Gain
from fusion_bench.stats.comparison import check_skew, decide_answer, paired_difference
from fusion_bench.stats.corrections import randomization_p_values
from fusion_bench.stats.intervals import MeanEstimate, estimate_mean
from fusion_bench.stats.max_t import FamilyRow, max_t
from fusion_bench.stats.power import SampleSize, estimate_spread
from fusion_bench.stats.repeat_variance import (
    RepeatTerm,
    add_repeat_variance,
    make_repeat_terms,
    paired_sides,
)
from fusion_bench.tune.objective import TuningObjective


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Two systems on the same queries.

    Attributes:
        tuned: Shape (Q,).
        default: Shape (Q,).
        groups: Shape (Q,): the id of each query's group, its own where none is declared.
        repeats: Shape (T, Q): the differences tuned − default on each repeat of the lists; None =
            there is one.
    """

    tuned: FloatArray
    default: FloatArray
    groups: Sequence[str]
    repeats: FloatArray | None = None

    @property
    def repeat_terms(self) -> tuple[RepeatTerm, ...]:
        """What the repeats add to the variance of the gain."""
        return make_repeat_terms([self.repeats], number_by_appearance(self.groups)[0])


def paired_gain(
    tuned: FloatArray,
    default: FloatArray,
    groups: IntArray | None = None,
    *,
    is_bounded: bool = False,
    alpha: float = 0.05,
    seed: int | None = 0,
    repeats: FloatArray | None = None,
) -> Gain:
    """The mean paired difference tuned − default, with its interval by group.

    Args:
        tuned: Shape (Q,), the primary measure.
        default: Shape (Q,), the same queries.
        groups: Shape (Q,), integer codes; None = every query is its own group.
        is_bounded: Values lie in [0, 1].
        alpha: 1 − coverage of the t interval.
        seed: Of the randomization test; None = Student's test alone, which is quick.
        repeats: Shape (T, Q): the differences on each repeat of the lists; None = there is one.

    Returns:
        Its ``p`` is that of the paired randomization test by group, at least Student's; 1 where
        nothing differs. With one group, interval and ``sd`` are None.
    """
    difference = paired_difference(tuned, default)
    mean = estimate_mean(difference, groups, alpha=alpha)
    mean = add_repeat_variance(mean, make_repeat_terms([repeats], groups), alpha=alpha)
    p = 1.0
    if difference.any():
        p = student_p(mean)
    if difference.any() and seed is not None:
        p = max(p, float(randomization_p_values(difference[None], groups, seed=seed)[0]))
    ends = clip_ends(mean.low, mean.high, is_bounded=is_bounded)
    return _make_gain(tuned, default, difference, mean, ends=ends, p=p)


def clip_ends(low: float, high: float, *, is_bounded: bool) -> tuple[float | None, float | None]:
    """The ends of an interval of a difference as records hold them.

    Args:
        low: Lower end; not finite = none is known.
        high: Upper end.
        is_bounded: Values lie in [0, 1], so that the ends stay within ±1.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, None
    return (max(low, -1.0), min(high, 1.0)) if is_bounded else (low, high)


def student_p(mean: MeanEstimate) -> float:
    """Two-sided p of Student's t test of a mean of 0; 1 where no spread is known."""
    from fusion_bench.util.special_functions import special  # late, as it is slow

    if not mean.standard_error > 0:  # written so that NaN ends here too
        return 1.0
    return float(2 * special.stdtr(mean.freedom, -abs(mean.mean) / mean.standard_error))


def estimate_family(
    rows: Sequence[PairedValues], *, is_bounded: bool = False, alpha: float = 0.05, seed: int = 0
) -> list[Gain]:
    """The gains that the verdicts of one run rest on, adjusted for their number by max-T.

    Args:
        rows: One a verdict.
        is_bounded: Values lie in [0, 1], so that no interval goes beyond ±1.
        alpha: Two-sided level of the whole family.
        seed: Of the sign flips.

    Returns:
        Their ``p`` and intervals are those of :func:`fusion_bench.stats.max_t.max_t`, so that p is
        at most ``alpha`` where the interval does not hold 0.
    """
    family = [
        FamilyRow(
            paired_difference(row.tuned, row.default),
            tuple(row.groups),
            repeat_terms=row.repeat_terms,
        )
        for row in rows
    ]
    tested = max_t(family, seed=seed, alpha=alpha)
    gains = []
    for row, each, result in zip(rows, family, tested.rows, strict=True):
        # Of a few changed groups no interval is finite.
        ends = clip_ends(result.low, result.high, is_bounded=is_bounded)
        gains.append(
            _make_gain(
                row.tuned, row.default, each.difference, result.estimate, ends=ends, p=result.p
            )
        )
    return gains


def _make_gain(
    tuned: FloatArray,
    default: FloatArray,
    difference: FloatArray,
    mean: MeanEstimate,
    *,
    ends: tuple[float | None, float | None],
    p: float,
) -> Gain:
    """The record of tuned − default; ``mean`` estimates the mean of ``difference``."""
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    return Gain(
        default=float(default.mean()),
        tuned=float(tuned.mean()),
        difference=mean.mean,
        low=ends[0],
        high=ends[1],
        p=p,
        sd=mean.standard_error * math.sqrt(mean.queries),
        wins=wins,
        ties=len(difference) - wins - losses,
        losses=losses,
        queries=mean.queries,
        groups=mean.groups,
        design_effect=mean.design_effect,
    )


def estimate_needed(
    row: PairedValues, gain: Gain, min_gain: float, *, factor: float = 1.0
) -> SampleSize | None:
    """Held-out queries that would show the least gain with power .8.

    Args:
        row: The held-out values.
        gain: From :func:`estimate_family`; its critical value is planned for.
        min_gain: The gain to show.
        factor: Critical value of the next look ÷ that of this one.

    Returns:
        None where the spread is not known, or the least gain is 0.
    """
    difference = paired_difference(row.tuned, row.default)
    spread = estimate_spread(difference, number_by_appearance(row.groups)[0])
    error = spread.standard_error
    if not (min_gain > 0 and error is not None and error > 0):  # so that NaN ends here too
        return None
    critical = None
    if gain.low is not None and gain.high is not None:
        # The greater side: the other may be cut at ±1.
        width = max(gain.high - gain.difference, gain.difference - gain.low)
        critical = factor * width / error
    return spread.needed_queries(min_gain, critical)


@dataclass(frozen=True, eq=False)
class UntunedSystem:
    """What nobody tuned, on some queries.

    Attributes:
        name: Of the system or the source.
        kind: Whether it is a system of the experiment or a single source.
        values: Shape (Q,).
        repeats: Shape (T, Q): its values on each repeat of its lists; None = there is one.
        is_shared: Whether the tuned system reads one of its lists that have several repeats.
        bounds: What unjudged documents could make of its values; None with complete judgments.
    """

    name: str
    kind: FloorKind
    values: FloatArray
    repeats: FloatArray | None = None
    is_shared: bool = False
    bounds: QueryBounds | None = None

    def select_queries(self, queries: BoolArray | IntArray) -> UntunedSystem:
        """The same on some of its queries, a mask of shape (Q,) or their numbers."""
        return replace(
            self,
            values=self.values[queries],
            repeats=select_repeats(self.repeats, queries),
            bounds=self.bounds and self.bounds.select_queries(queries),
        )


def select_repeats(repeats: FloatArray | None, queries: BoolArray | IntArray) -> FloatArray | None:
    """Some queries of (T, Q) values; None = there is one repeat."""
    return None if repeats is None else repeats[:, queries]


def evaluate_untuned(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    objective: TuningObjective,
    *,
    allowed: Collection[ObstacleKind] = (),
) -> tuple[UntunedSystem, ...]:
    """Evaluate every other system, the default with another ``missing``, and every source.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        dataset: With every list of its systems.
        objective: What is tuned.
        allowed: Obstacles that do not stop tuning.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        FusionBenchError: A system does not fit the dataset.
    """
    task = prepare_dataset(experiment.model_copy(update=dict(ALL_JUDGED)), source, dataset)
    refuse_obstacles(dataset.name, task.obstacles, allowed)
    others = [s for name, s in experiment.systems.items() if name != objective.system.name]
    known = [system.resolved_config for system in (*others, objective.system)]
    repaired = [s for s in missing_variants(objective) if s.resolved_config not in known]
    names = drop_final(task.runs.sources, task.runs.roles)
    alone = [System(name=name, runs=(name,)) for name in sorted(names)]
    sources = [system for system in alone if system.resolved_config not in known]
    systems = [*others, *sources, *repaired]
    measures = [objective.measure]
    scores = evaluate_systems(systems, task.runs, measures, training=task.training)
    place = {query: q for q, query in enumerate(task.runs.queries)}
    order = np.array([place[query] for query in objective.runs.queries])
    kinds: list[FloorKind] = ["system" for _ in others]
    kinds += ["source" for _ in sources]
    kinds += ["missing" for _ in repaired]
    tuned = task.repeat_lists(objective.system)
    return tuple(
        UntunedSystem(
            score.system,
            kind,
            score.values[0],
            score.repeats[:, 0] if len(score.repeats) > 1 else None,
            is_shared=not tuned.isdisjoint(task.repeat_lists(system)),
            bounds=find_system_bounds(system, task.runs, measures, training=task.training)[0],
        ).select_queries(order)
        for score, kind, system in zip(scores, kinds, systems, strict=True)
    )


def missing_variants(objective: TuningObjective) -> list[System]:
    """The default with each other ``missing`` that can be computed; none where it has none.

    A default that skips what a list did not return can be far below one that counts 0; a search
    that only finds that out is no tuning.
    """
    system = objective.system
    field = type(system.fusion).model_fields.get("missing")
    if field is None or system.class_configs is not None:
        return []
    now = system.model_dump()["fusion"]["missing"]
    others = [value for value in get_args(field.annotation) if value != now]
    built = {
        value: objective.build_system({"fusion.missing": value}).model_dump()
        for value in others
        if objective.failure_reason({"fusion.missing": value}) is None
    }
    return [
        parse_model(System, {**data, "name": f"{system.name}, missing: {value}"})
        for value, data in built.items()
    ]


def compare_floor(
    untuned: Sequence[UntunedSystem],
    tuned: FloatArray,
    groups: Sequence[str],
    *,
    is_bounded: bool = False,
    min_gain: float,
    alpha: float,
    seed: int,
    tuned_repeats: FloatArray | None = None,
) -> tuple[FloorRow, ...]:
    """Compare what nobody tuned with the tuned system; all of it is one family.

    Args:
        untuned: On the held-out queries.
        tuned: Shape (Q,), the same queries.
        groups: Shape (Q,): group ids.
        is_bounded: Values lie in [0, 1].
        min_gain: Differences below it are equivalent.
        alpha: Two-sided level of the family.
        seed: Of the sign flips.
        tuned_repeats: Shape (T, Q): of the tuned system on each repeat; None = there is one.

    Returns:
        The highest mean first.
    """
    if not untuned:
        return ()
    keys = tuple(groups)
    codes = number_by_appearance(keys)[0]
    family = [
        FamilyRow(
            paired_difference(each.values, tuned),
            keys,
            margin=min_gain,
            repeat_terms=make_repeat_terms(
                paired_sides(each.repeats, tuned_repeats, is_shared=each.is_shared), codes
            ),
        )
        for each in untuned
    ]
    tested = max_t(family, seed=seed, alpha=alpha)
    rows = []
    for each, row, result in zip(untuned, family, tested.rows, strict=True):
        low, high = clip_ends(result.low, result.high, is_bounded=is_bounded)
        changed = int(np.count_nonzero(row.difference))
        answer = decide_answer(result, changed=changed, alpha=alpha)
        rows.append(
            FloorRow(
                name=each.name,
                kind=each.kind,
                mean=float(each.values.mean()),
                difference=result.estimate.mean,
                low=low,
                high=high,
                p=result.p,
                answer=check_skew(answer, row.difference, codes, alpha=alpha)[0],
                bounds=each.bounds and each.bounds.record,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.mean))
