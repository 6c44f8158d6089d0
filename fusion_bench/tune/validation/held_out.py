"""The held-out evaluation of a search, and its report.

The held-out queries are looked at once, after everything has been chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.evaluation.crag.evidence import (
    require_absolute,
)
from fusion_bench.evaluation.near_duplicates import find_near_duplicates
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.evaluation.unjudged.unjudged_difference import UnjudgedDifference
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning_records import trials as trial_model
from fusion_bench.report.tuning_records import tuning_report as model
from fusion_bench.report.tuning_records.floor import FloorRow
from fusion_bench.report.tuning_records.pareto_front import ParetoFront
from fusion_bench.report.tuning_records.trials import Gain, TuningVerdict
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.class_tuning import ClassTuning
from fusion_bench.tune.validation.crag import FittedThresholds, collect_evidence, fit_lists
from fusion_bench.tune.validation.cross_fitting import CrossFit
from fusion_bench.tune.validation.cross_validation import CrossValidation, tuning_folds
from fusion_bench.tune.validation.data_facts import measure_facts
from fusion_bench.tune.validation.fit_all_queries import adopt_fit
from fusion_bench.tune.validation.floor import UntunedValues, judge_floor
from fusion_bench.tune.validation.gains import (
    PairedValues,
    estimate_needed,
    judge_family,
    paired_gain,
)
from fusion_bench.tune.validation.held_out_unjudged import HeldOutUnjudged, shown_direction
from fusion_bench.tune.validation.sensitivity.importance import parameter_importances
from fusion_bench.tune.validation.sensitivity.sensitivity_records import (
    fold_records,
    parameter_records,
    plateau_record,
)
from fusion_bench.tune.validation.shrunken_gain import shrink_gain
from fusion_bench.tune.validation.splits import QuerySplit
from fusion_bench.tune.validation.trial_selection import (
    describe_choice,
)
from fusion_bench.tune.validation.verdict import ChosenTrial, decide_verdict


@dataclass(frozen=True, eq=False)
class HeldOutEvaluation:
    """What is needed to evaluate a search: the objective, its split, and the rules.

    Attributes:
        objective: What was tuned, on all queries.
        split: Which queries it was tuned on, and which decide.
        tuning: What the experiment's ``tune:`` says.
        alpha: Two-sided level of the experiment.
        level: One-sided level of the verdicts; None = half of ``alpha``.
        next_factor: Critical value of the next look ÷ that of this one.
    """

    objective: TuningObjective
    split: QuerySplit
    tuning: TuneSettings
    alpha: float = 0.05
    level: float | None = None
    next_factor: float = 1.0

    @property
    def verdict_level(self) -> float:
        """One-sided level of the verdicts; intervals have a coverage of 1 − 2 · this."""
        return self.alpha / 2 if self.level is None else self.level

    def measure_gain(self, tuned: FloatArray, default: FloatArray, mask: BoolArray) -> Gain:
        """Tuned − default on the queries where ``mask`` is true; both (Q,). Not adjusted."""
        return paired_gain(
            tuned[mask],
            default[mask],
            self.objective.group_codes[mask],
            alpha=2 * self.verdict_level,
            seed=self.tuning.seed,
        )

    def judge_family(self, rows: Sequence[tuple[FloatArray, FloatArray]]) -> list[Gain]:
        """The held-out gains of several verdicts, adjusted for their number.

        Args:
            rows: Tuned and default, each of shape (held-out queries,).
        """
        pairs = [self._pair(tuned, default) for tuned, default in rows]
        return judge_family(pairs, alpha=2 * self.verdict_level, seed=self.tuning.seed)

    def check_feasible(self) -> None:
        """Refuse before the search what could not be evaluated after it.

        Raises:
            ConfigError: More folds than groups to tune on, or thresholds asked for without a
                rerank list whose scores mean the same for every query.
        """
        if self.tuning.crag is not None:
            require_absolute("the dataset", self.objective.spaces)
        if self.tuning.folds:
            tuning_folds(self.objective, self.split, self.tuning)

    def _pair(self, tuned: FloatArray, default: FloatArray) -> PairedValues:
        """Values on the held-out queries, with their groups."""
        groups = [self.objective.runs.groups[q] for q in np.flatnonzero(self.split.held_out)]
        return PairedValues(tuned, default, groups)

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
        )

    def make_report(
        self,
        result: SearchResult,
        chosen: Trial,
        cross: CrossValidation | None,
        *,
        name: str,
        dataset: Dataset,
        provenance: Provenance,
        per_type: ClassTuning | None = None,
        front: ParetoFront | None = None,
        untuned: UntunedValues | None = None,
        fit: CrossFit | None = None,
    ) -> model.TuningReport:
        """The report of a search.

        Args:
            result: The search on all tuning queries.
            chosen: From :func:`choose_trial`.
            cross: The nested cross-validation; None = not asked for.
            name: Of the experiment.
            dataset: Where the queries come from.
            provenance: Of the run.
            per_type: From :func:`tune_by_class`; None = not asked for.
            front: From :class:`ParetoSearch`; None = not asked for.
            untuned: From :func:`evaluate_untuned`; None = nothing is beside the tuned system.
            fit: From :func:`fit_all_queries`; None = the chosen trial itself is evaluated.
        """
        objective, split = self.objective, self.split
        default, chosen_values = objective.evaluate_params(
            [objective.default_params, chosen.params]
        )
        tuned = chosen_values if fit is None else default + fit.values
        thresholds = self._fit_thresholds(chosen, dataset)
        held_out, *others = self._family_gains(tuned, default, per_type, thresholds)
        checker = HeldOutUnjudged(objective, split, dataset, self.alpha)
        system = objective.build_system(chosen.params)
        unjudged = checker.compare(system, objective.system)
        if fit is not None:
            held_out = adopt_fit(held_out, fit)
        tune = self.measure_gain(chosen_values, default, split.tune)
        verdict = self.decide_with_unjudged(held_out, describe_choice(result, chosen), unjudged)
        rows = np.flatnonzero(split.held_out).tolist()
        return model.TuningReport(
            name=name,
            dataset=dataset.name,
            fingerprint=dataset.fingerprint,
            system=objective.system.name,
            measure=objective.measure.name,
            split=split.origin,
            split_seed=split.split_seed,
            settings=self._settings_record(),
            parameters=parameter_records(objective, split, chosen),
            default=objective.system.resolved_config,
            choice=model.Choice(
                rule=self.tuning.choose,
                trial=chosen.number,
                params=dict(chosen.params),
                config=system.resolved_config,
            ),
            tune=tune,
            nested=cross and self.measure_gain(cross.values, default, cross.fold >= 0),
            held_out=held_out,
            level=self.verdict_level,
            verdict=verdict,
            shrunken=shrink_gain(None if fit else tune, held_out) if verdict == "ship" else None,
            needed=estimate_needed(
                self._pair(tuned[split.held_out], default[split.held_out]),
                held_out,
                self.tuning.min_gain,
                factor=self.next_factor,
            ),
            unjudged=unjudged and unjudged.record,
            floor=() if untuned is None else self._judge_floor(untuned, tuned),
            data=measure_facts(objective, system, dataset, split.held_out, self.tuning.seed),
            folds=fold_records(objective, cross, default),
            plateau=plateau_record(objective, split, chosen_values, self.tuning.seed),
            near_duplicates=find_near_duplicates(dataset, objective.runs.queries),
            importances=parameter_importances(objective.parameters, result.trials),
            **self._class_gains(tuned, default),
            front=front,
            thresholds=tuple(
                fitted.to_report(gain, self.decide_verdict(gain))
                for fitted, gain in zip(thresholds, others[-len(thresholds) :], strict=False)
            ),
            per_type=per_type and self.class_record(per_type, default, others[0]),
            trials=tuple(trial_model.Trial(**vars(trial)) for trial in result.trials),
            held_out_queries=tuple(objective.runs.queries[q] for q in rows),
            held_out_values=tuple(zip(default[rows].tolist(), tuned[rows].tolist(), strict=True)),
            interrupted=result.interrupted or bool(front and front.interrupted),
            provenance=provenance,
        )

    def _family_gains(
        self,
        tuned: FloatArray,
        default: FloatArray,
        per_type: ClassTuning | None,
        thresholds: Sequence[FittedThresholds],
    ) -> list[Gain]:
        """The gains of the tuned system, of those by class, and of each list's thresholds."""
        mask = self.split.held_out
        rows = [(tuned[mask], default[mask])]
        if per_type is not None:
            rows.append((per_type.values[mask], per_type.overall[mask]))
        rows += [(each.utilities(each.tuned), each.utilities(each.default)) for each in thresholds]
        return self.judge_family(rows)

    def _judge_floor(self, untuned: UntunedValues, tuned: FloatArray) -> tuple[FloorRow, ...]:
        mask = self.split.held_out
        return judge_floor(
            untuned.select_queries(mask),
            tuned[mask],
            self._pair(tuned[mask], tuned[mask]).groups,
            min_gain=self.tuning.min_gain,
            alpha=2 * self.verdict_level,
            seed=self.tuning.seed,
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
        self, per_type: ClassTuning, default: FloatArray, over_global: Gain
    ) -> model.PerTypeResult:
        """The record of parameters by class, with their verdict.

        Args:
            per_type: From :func:`tune_by_class`.
            default: Shape (Q,): values of the default.
            over_global: Held out, by class − the parameters for all, adjusted for its family.
        """
        gain = self.measure_gain(per_type.values, default, self.split.held_out)
        verdict = self.decide_verdict(over_global, per_type.chosen)
        return per_type.to_record(gain, over_global, verdict)

    def _settings_record(self) -> dict[str, object]:
        rules = self.tuning.model_dump(
            mode="json",
            exclude={"parameters", "system", "split_seed", "effort", "crag", "front", "looks"},
        )
        sampler = self.tuning.search_settings().sampler
        return {**rules, "sampler": sampler, "alpha": self.alpha}

    def _class_gains(self, tuned: FloatArray, default: FloatArray) -> dict[str, Any]:
        """The held-out gains by query type and by intent."""
        by_type = self._gains_by("type", tuned, default)
        by_intent = self._gains_by("intent", tuned, default)
        return {
            "by_type": tuple(model.TypeGain(type=name, gain=gain) for name, gain in by_type),
            "by_intent": tuple(
                model.IntentGain(intent=name, gain=gain) for name, gain in by_intent
            ),
        }

    def _gains_by(
        self, field: str, tuned: FloatArray, default: FloatArray
    ) -> Iterator[tuple[str | None, Gain]]:
        """The held-out gain of each value of a field of the queries; nothing with fewer than two.

        The value None stands for queries without it.
        """
        held_out, runs = self.split.held_out, self.objective.runs
        values = np.array(runs.types if field == "type" else runs.values_of(field), dtype=object)
        names = sorted(set(values[held_out]), key=lambda name: (name is None, name or ""))
        for name in names if len(names) > 1 else ():
            yield name, self.measure_gain(tuned, default, held_out & np.equal(values, name))

    def _fit_thresholds(self, chosen: Trial, dataset: Dataset) -> list[FittedThresholds]:
        if (crag := self.tuning.crag) is None:
            return []
        system = self.objective.build_system(chosen.params)
        lists = collect_evidence(self.objective, system, dataset, crag)
        return fit_lists(lists, self.split, crag)
