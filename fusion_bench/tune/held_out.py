"""The rules by which held-out queries decide on what was tuned.

The held-out queries are looked at once, after everything has been chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.checks.records import NearDuplicates
from fusion_bench.config.parameters import Params
from fusion_bench.config.query_types import ClassKey
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.query_splits import QuerySplit
from fusion_bench.evaluation.crag import require_absolute
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.report.tuning_records import Gain, PerTypeResult, TuningVerdict
from fusion_bench.stats.unjudged import Direction, UnjudgedDifference
from fusion_bench.stats.values import Pair
from fusion_bench.tune.gains import estimate_family
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.trial_selection import ChosenTrial, decide_verdict, tuning_folds


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
