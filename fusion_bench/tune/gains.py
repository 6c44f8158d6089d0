"""Gains over the default, over untuned systems: intervals, the verdicts of a run as a family."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, get_args

import numpy as np

from fusion_bench.checks.completion_bounds import find_system_bounds
from fusion_bench.checks.obstacles import refuse_obstacles
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import drop_final
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.evaluation.recommendation import Effort, find_effort
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System, collapse_alike
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.tuning_records import FloorKind, FloorRow, Gain
from fusion_bench.stats.comparison import decide_answer
from fusion_bench.stats.inference import RowInference, infer_family
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.power import SampleSize, estimate_spread, two_sided_p
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.tune.objective import TuningObjective

#: What nothing takes.
NO_EFFORT: Final = Effort(0, 0, 0)


def estimate_family(pairs: Sequence[Pair], *, alpha: float = 0.05, seed: int = 0) -> list[Gain]:
    """Gains whose intervals and p hold together, see :func:`infer_family`.

    Args:
        pairs: The family: tuned and default systems.
        alpha: Two-sided level of the whole family.
        seed: Of the draws.
    """
    inferred = infer_family(pairs, seed=seed, alpha=alpha)
    return [_make_gain(pair, result) for pair, result in zip(pairs, inferred, strict=True)]


def _make_gain(pair: Pair, result: RowInference) -> Gain:
    count = len(pair.keys)
    return Gain(
        default=float(pair.baseline.values.mean()),
        tuned=float(pair.candidate.values.mean()),
        difference=result.mean,
        low=result.low,
        high=result.high,
        p=result.p,
        loss_share=result.loss_share,
        sd=result.error * math.sqrt(count),
        wins=pair.wins,
        ties=count - pair.changed,
        losses=pair.losses,
        queries=count,
        groups=result.units,
        design_effect=estimate_mean(pair.difference, pair.groups).design_effect,
    )


def student_gain(pair: Pair, *, alpha: float = 0.05) -> Gain:
    """Tuned − default with Student's interval and p, for levels so small that draws take too long.

    Args:
        pair: The tuned system and the default.
        alpha: 1 − coverage of the interval.
    """
    mean = pair.estimate(alpha)
    result = RowInference(
        mean.mean,
        mean.standard_error,
        mean.groups,
        0,
        low=mean.low,
        high=mean.high,
        p=two_sided_p(mean.mean, mean.standard_error, mean.freedom),
    )
    return _make_gain(pair, result)


def estimate_needed(
    pair: Pair, gain: Gain, min_gain: float, *, factor: float = 1.0
) -> SampleSize | None:
    """Held-out queries that would show the least gain with a power of about .8.

    Args:
        pair: The held-out values.
        gain: From :func:`estimate_family`; its critical value is planned for.
        min_gain: The gain to show.
        factor: Critical value of the next look ÷ that of this one.

    Returns:
        None where the spread is not known, or the least gain is 0.
    """
    spread = estimate_spread(pair.difference, pair.groups)
    error = spread.standard_error
    if not (min_gain > 0 and error is not None and error > 0):  # so that NaN ends here too
        return None
    critical = None
    if gain.low is not None:
        critical = factor * (gain.difference - gain.low) / error
    return spread.needed_queries(min_gain, critical)


@dataclass(frozen=True, eq=False)
class UntunedSystem(MeasuredValues):
    """Values of an untuned system or single source on some queries.

    Attributes:
        name: Of the system or the source.
        kind: Whether it is a system of the experiment or a single source.
        config: The resolved system.
        effort: What it takes to run and to explain.
    """

    _: KW_ONLY
    name: str
    kind: FloorKind = "system"
    config: Mapping[str, Any] = field(default_factory=dict)
    effort: Effort = NO_EFFORT


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
    alone = [
        collapse_alike(
            System(name=f"list {name}" if name in experiment.systems else name, runs=(name,)),
            experiment.systems.values(),
        )
        for name in sorted(names)
    ]
    sources = [system for system in alone if system.resolved_config not in known]
    systems = [*others, *sources, *repaired]
    measures = [objective.measure]
    scores = evaluate_systems(systems, task.runs, measures, training=task.training)
    place = {query: q for q, query in enumerate(task.runs.queries)}
    order = np.array([place[query] for query in objective.runs.queries])
    kinds: list[FloorKind] = ["system" for _ in others]
    kinds += ["source" for _ in sources]
    kinds += ["missing" for _ in repaired]
    return tuple(
        UntunedSystem(
            score.values[0],
            score.repeats[:, 0],
            task.repeat_lists(system),
            name=score.system,
            kind=kind,
            config=system.resolved_config,
            effort=find_effort(system),
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
    tuned: UntunedSystem,
    groups: Sequence[str],
    *,
    is_bounded: bool = False,
    min_gain: float,
    alpha: float,
    seed: int,
) -> tuple[FloorRow, ...]:
    """Compare what nobody tuned with the tuned system; all of it is one family.

    Args:
        untuned: On the held-out queries.
        tuned: On the same queries.
        groups: Shape (Q,): group ids.
        is_bounded: Values lie in [0, 1].
        min_gain: Differences below it are equivalent.
        alpha: Two-sided level of the family.
        seed: Of the draws.

    Returns:
        The highest mean first.
    """
    if not untuned:
        return ()
    family = [Pair(each, tuned, tuple(groups), is_bounded=is_bounded) for each in untuned]
    inferred = infer_family(family, seed=seed, alpha=alpha)
    rows = [
        FloorRow(
            name=each.name,
            kind=each.kind,
            mean=float(each.values.mean()),
            difference=result.mean,
            low=result.low,
            high=result.high,
            p=result.p,
            answer=decide_answer(
                result,
                changed=pair.changed,
                min_gain=min_gain,
                alpha=alpha,
            ),
            bounds=each.bounds and each.bounds.record,
        )
        for each, pair, result in zip(untuned, family, inferred, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row.mean))
