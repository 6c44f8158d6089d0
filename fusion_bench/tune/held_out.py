"""Gains of tuned and untuned systems, and the rules by which held-out queries decide on them.

The held-out queries are looked at once, after everything has been chosen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final, get_args

import numpy as np

from fusion_bench.checks.obstacles import refuse_obstacles
from fusion_bench.checks.records import NearDuplicates
from fusion_bench.checks.unjudged import find_system_bounds
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.parameters import Params
from fusion_bench.config.query_types import ClassKey
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.data.records import drop_final
from fusion_bench.evaluation.crag import require_absolute
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.evaluation.recommendation import Effort, find_effort
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System, collapse_alike
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.report.tuning_records import (
    FloorKind,
    FloorRow,
    Gain,
    PerTypeResult,
    TuningVerdict,
)
from fusion_bench.stats.comparison import decide_answer
from fusion_bench.stats.inference import RowInference, infer_family
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.power import SampleSize, estimate_spread, two_sided_p
from fusion_bench.stats.unjudged import Direction, UnjudgedDifference
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.trial_selection import ChosenTrial, decide_verdict, tuning_folds

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


@dataclass(frozen=True, eq=False)
class ClassTuning:
    """Parameters by class, and their values.

    Attributes:
        key: By what the parameters differ.
        params: Class → its parameters; the other classes keep those for all.
        system: Answers each class by its parameters.
        base: Answers all classes by the parameters for all.
        values: Shape (Q,): by class.
        overall: Shape (Q,): of the parameters for all.
        chosen: ``default`` = each class kept the parameters for all.
    """

    key: ClassKey
    params: Mapping[str, Params]
    system: System
    base: System
    values: FloatArray
    overall: FloatArray
    chosen: ChosenTrial


def shown_direction(verdict: TuningVerdict, gain: Gain) -> Direction | None:
    """Sign that a verdict claims for tuned − default; None if it claims none."""
    if verdict in {"ship", "groups decide"} or (
        verdict == "keep" and gain.low is not None and gain.low > 0
    ):
        return 1
    return -1 if verdict == "worse" else None


@dataclass(frozen=True, eq=False)
class HeldOutEvaluation:
    """The objective, its split and the rules by which a search is evaluated.

    Attributes:
        objective: What was tuned, on all queries.
        split: Which queries it was tuned on, and which decide.
        tuning: What the experiment's ``tune:`` says.
        alpha: Two-sided level of the experiment.
        level: One-sided level of the verdicts; None = half of ``alpha``.
        next_factor: Critical value of the next look ÷ that of this one.
        near_duplicates: Queries that depend on each other though no group says so; None = few.
        is_grouped: Whether groups are declared or looked for: with ``groups: none`` a copy of a
            held-out query may have been tuned on.
    """

    objective: TuningObjective
    split: QuerySplit
    tuning: TuneSettings
    alpha: float = 0.05
    level: float | None = None
    next_factor: float = 1.0
    near_duplicates: NearDuplicates | None = None
    is_grouped: bool = True

    @property
    def groups_decide(self) -> bool:
        """Whether ``ship`` is withheld until the dataset says which queries are one group."""
        duplicates = self.near_duplicates
        return not self.is_grouped or (duplicates is not None and duplicates.withholds)

    @property
    def is_bounded(self) -> bool:
        """Whether values lie in [0, 1], so that no interval of a difference goes beyond ±1."""
        return self.objective.measure.is_bounded

    @property
    def verdict_level(self) -> float:
        """One-sided level of the verdicts; intervals have a coverage of 1 − 2 · this."""
        return self.alpha / 2 if self.level is None else self.level

    def measure_gain(self, pair: Pair) -> Gain:
        """Tuned − default, a family of its own."""
        return self.estimate_family([pair])[0]

    def estimate_family(self, pairs: Sequence[Pair]) -> list[Gain]:
        """Gains that hold together, at the level of the verdicts."""
        return estimate_family(pairs, alpha=2 * self.verdict_level, seed=self.tuning.seed)

    def check_feasible(self) -> None:
        """Refuse before the search what could not be evaluated after it.

        Raises:
            ConfigError: More folds than groups to tune on, or thresholds asked for without a
                rerank list whose scores mean the same for every query.
        """
        if self.tuning.crag is not None:
            require_absolute("the dataset", self.objective.runs.spaces)
        if self.tuning.folds:
            tuning_folds(self.objective, self.split, self.tuning)

    def pair_values(
        self, tuned: FloatArray, default: FloatArray, mask: BoolArray | None = None
    ) -> Pair:
        """Two systems on some queries, without the repeats of their lists.

        Args:
            tuned: Shape (Q,).
            default: Shape (Q,).
            mask: Shape (Q,): which queries; None = the held-out ones.
        """
        keys = self.objective.runs.groups
        pair = Pair.from_arrays(tuned, default, keys, is_bounded=self.is_bounded)
        return pair.select_queries(self.split.held_out if mask is None else mask)

    def list_groups(self, mask: BoolArray) -> tuple[str, ...]:
        """The group ids of the queries where ``mask``, (Q,), is true."""
        return tuple(self.objective.runs.groups[q] for q in np.flatnonzero(mask))

    def decide_verdict(
        self, gain: Gain, chosen: ChosenTrial = "tuned", *, unjudged_decide: bool = False
    ) -> TuningVerdict:
        """The verdict that a held-out gain allows."""
        return decide_verdict(
            gain,
            min_gain=self.tuning.min_gain,
            level=self.verdict_level,
            chosen=chosen,
            unjudged_decide=unjudged_decide,
            groups_decide=self.groups_decide,
        )

    def decide_with_unjudged(
        self, gain: Gain, chosen: ChosenTrial, unjudged: UnjudgedDifference | None
    ) -> TuningVerdict:
        """The verdict; where unjudged documents contradict what it shows, they decide."""
        verdict = self.decide_verdict(gain, chosen)
        direction = shown_direction(verdict, gain)
        if direction is None or unjudged is None:
            return verdict
        decides = unjudged.decides(direction, self.tuning.min_gain)
        return self.decide_verdict(gain, chosen, unjudged_decide=decides)

    def class_record(
        self,
        per_type: ClassTuning,
        default: FloatArray,
        over_global: Gain,
        unjudged: UnjudgedDifference | None = None,
    ) -> PerTypeResult:
        """The record of parameters by class, with their verdict.

        Args:
            per_type: From :func:`tune_by_class`.
            default: Shape (Q,): values of the default.
            over_global: Held out, by class − the parameters for all, adjusted for its family.
            unjudged: What unjudged documents could change in ``over_global``; None = nothing.
        """
        gain = self.measure_gain(self.pair_values(per_type.values, default))
        verdict = self.decide_with_unjudged(over_global, per_type.chosen, unjudged)
        return PerTypeResult(
            params={name: dict(params) for name, params in per_type.params.items()},
            key=per_type.key.key,
            config=per_type.system.resolved_config,
            gain=gain,
            over_global=over_global,
            verdict=verdict,
            unjudged=unjudged and unjudged.record,
        )
