"""The tuning of one objective: split, search, cross-validation, held-out evaluation.

Each class with enough queries is searched by itself, starting from the parameters for all; the
other classes keep those. The held-out queries decide whether that beats one set for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from fusion_bench.checks.lint import describe_dataset, lint_systems
from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.config.models import parse_model
from fusion_bench.config.parameters import Params
from fusion_bench.config.query_types import BY_TYPE, PREDICTED_TYPE, ClassKey
from fusion_bench.data.ordering import BoolArray, FloatArray
from fusion_bench.data.query_splits import split_queries
from fusion_bench.evaluation.report_file import Provenance
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import PerTypeConfig, System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.plain_systems import resolve_classes
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.tune.held_out import ClassTuning, HeldOutEvaluation, UntunedSystem
from fusion_bench.tune.held_out_report import HeldOutReport, SearchOutcome
from fusion_bench.tune.looks import UNCOUNTED, LookCounter, open_held_out_look
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.pareto import ParetoSearch
from fusion_bench.tune.search import SearchResult, Trial, read_sampler, run_search, settle_sampler
from fusion_bench.tune.trial_selection import (
    ChosenTrial,
    choose_trial,
    cross_validate,
    describe_choice,
    fit_default_folds,
)
from fusion_bench.util.formatting import Progress, ignore_progress

#: A class with fewer tuning groups keeps the parameters for all.
LEAST_GROUPS = 5
#: Only these parts of a system can differ by class.
PARTS = ("fusion", "blend")
#: What the search of a class chose, the one that says most first.
CHOICES: Final[tuple[ChosenTrial, ...]] = ("tuned", "default over better trials", "default")

#: A class, its objective and a mask of the queries that may be looked at → its search.
ClassSearch = Callable[[str, TuningObjective, BoolArray], SearchResult]


def tune_by_class(
    evaluation: HeldOutEvaluation, chosen: Trial, search: ClassSearch, key: ClassKey = BY_TYPE
) -> ClassTuning | None:
    """Search each query type or intent by itself, and evaluate all of them together.

    Args:
        evaluation: The objective, its split and the rules.
        chosen: The parameters for all queries.
        search: Runs one search.
        key: By what the parameters differ.

    Returns:
        None where no class has enough queries, or no tuned parameter can differ by class.
    """
    space = tuple(p for p in evaluation.objective.parameters if p.path.split(".")[0] in PARTS)
    paths = {parameter.path for parameter in space}
    # A condition on a fixed value either holds or removes its parameter.
    kept = tuple(
        replace(parameter, when=tuple((p, allowed) for p, allowed in parameter.when if p in paths))
        for parameter in space
        if all(p in paths or chosen.params.get(p) in allowed for p, allowed in parameter.when)
    )
    base = replace(
        evaluation.objective,
        system=evaluation.objective.build_system(chosen.params),
        parameters=kept,
    )
    masks = _class_masks(base, key)
    codes, split = evaluation.objective.runs.group_codes, evaluation.split
    enough = {
        name: mask & split.tune
        for name, mask in masks.items()
        if (mask & split.held_out).any()
        and len(np.unique(codes[mask & split.tune])) >= LEAST_GROUPS
    }
    if not enough or not base.parameters or len(masks) < 2:
        return None
    params_by_class: dict[str, Params] = {}
    choices: set[ChosenTrial] = set()
    for name, keep in enough.items():
        result = search(name, base, keep)
        trial = choose_trial(base, result, keep, evaluation.tuning.choose)
        params_by_class[name] = trial.params
        choices.add(describe_choice(result, trial))
    overall = base.evaluate_params([base.default_params])[0]
    by_class: FloatArray = overall.copy()
    for name, params in params_by_class.items():
        by_class[masks[name]] = base.evaluate_params([params])[0][masks[name]]
    return ClassTuning(
        key=key,
        params=params_by_class,
        system=combine_classes(base, params_by_class, key),
        base=base.system,
        values=by_class,
        overall=overall,
        # Of the choices of several classes, the one that says most.
        chosen=next(choice for choice in CHOICES if choice in choices),
    )


def _class_masks(objective: TuningObjective, key: ClassKey) -> Mapping[str, BoolArray]:
    """(Q,) by class: the queries that a system by class would answer with its parameters."""
    runs = objective.runs
    types = objective.system.types
    field = PREDICTED_TYPE if key is BY_TYPE and types == "predicted" else key.field
    known = {value for value in runs.values_of(field) if value is not None} | {key.fallback}
    classes = resolve_classes(runs, key, known, types)
    return {name: classes == name for name in sorted(set(classes.tolist()))}


def combine_classes(
    base: TuningObjective, params_by_class: Mapping[str, Params], key: ClassKey = BY_TYPE
) -> System:
    """One system that answers each class by its own parameters, the others by those for all."""
    systems = {key.fallback: base.system} | {
        name: base.build_system(params) for name, params in params_by_class.items()
    }
    variants = {
        name: PerTypeConfig(fusion=system.fusion, blend=system.blend)
        for name, system in sorted(systems.items())
    }
    fallback = systems[key.fallback]
    changed = {"fusion": fallback.fusion, "blend": fallback.blend, key.key: variants}
    return base.system.model_copy(update=changed)


#: The logs of the search on all tuning queries, of each fold's, and of the front's.
LOG, FOLD_LOG, FRONT_LOG = "trials.jsonl", "trials-fold-{}.jsonl", "trials-front.jsonl"


@dataclass(frozen=True, eq=False)
class TuningRun:
    """The tuning of one objective, from the split to the verdict.

    Attributes:
        objective: What is tuned.
        dataset: The dataset of the objective.
        tuning: The settings.
        folder: Where the logs of the searches are kept; None = in memory only.
        alpha: Level of intervals and tests.
        storage: Database through which several machines search together; None = this one alone.
        export: Database that the finished search is copied to; None = not copied.
        progress: Called at each step.
        ignored: Ids of lint rules that are left out.
        expected: Ids of lint rules that systems break on purpose.
        looks: Counts the looks at the held-out queries.
        untuned: The other systems and the single sources; None = not compared.
    """

    objective: TuningObjective
    dataset: Dataset
    tuning: TuneSettings
    folder: Path | None
    alpha: float = 0.05
    storage: str | None = None
    export: str | None = None
    progress: Progress = ignore_progress
    ignored: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    looks: LookCounter = UNCOUNTED
    untuned: Sequence[UntunedSystem] = ()

    def run(self, name: str, provenance: Provenance) -> TuningReport:
        """Search, cross-validate, evaluate.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        objective = self.objective
        tuning = self.tuning
        split = split_queries(
            objective.runs,
            self.dataset.queries,
            split_seed=tuning.split_seed,
            held_out=tuning.held_out,
        )
        if tuning.sampler == "auto":  # the log's sampler; machines can share Optuna's only
            log = self._log(LOG)
            earlier = None if log is None or not log.exists() else read_sampler(log)
            sampler = "tpe" if self.storage is not None else earlier
            if sampler is None:
                settings = tuning.search_settings()
                sampler = settle_sampler(settings, objective.parameters).sampler
            tuning = tuning.model_copy(update={"sampler": sampler})
        tuning, split = fit_default_folds(objective.runs.groups, split, tuning)
        run = replace(self, tuning=tuning)
        evaluation = HeldOutEvaluation(
            objective,
            split,
            run.tuning,
            self.alpha,
            near_duplicates=find_near_duplicates(self.dataset, objective.runs.queries),
            is_grouped=self.dataset.spec.grouping != "none",
        )
        outcome = run._search_all(evaluation, name)
        self.progress(f"{self.dataset.name}: evaluating", 1, 1)
        look = None
        if outcome.tests_a_change or tuning.crag is not None:
            look = open_held_out_look(
                self.looks, evaluation, outcome, experiment=name, date=provenance.created
            )
            evaluation = replace(evaluation, level=look.level, next_factor=look.next_factor)
        held_out = HeldOutReport(evaluation, outcome, self.dataset, self.untuned)
        report = held_out.make_record(name, provenance)
        report = report if look is None else look.close(report)
        tuned = parse_model(System, {**report.choice.config, "name": "tuned"})
        systems = [self.objective.system, tuned]
        facts = [describe_dataset(self.dataset)]
        findings = lint_systems(systems, facts, ignored=self.ignored, expected=self.expected)
        lint = tuple(item.to_finding(None) for item in findings)
        return report.model_copy(update={"lint": lint})

    def _search_all(self, evaluation: HeldOutEvaluation, name: str) -> SearchOutcome:
        """Search on the tuning queries, by fold, by class, and for the front."""
        evaluation.check_feasible()
        objective, split, tuning = evaluation.objective, evaluation.split, self.tuning
        result = self._search(split.tune, 0)
        if self.export is not None:
            from fusion_bench.tune.shared_study import export_search  # imports Optuna

            export_search(result, objective, self.export, f"{name} on {self.dataset.name}")
        chosen = choose_trial(objective, result, split.tune, tuning.choose)
        cross = per_type = front = None
        try:
            _check_finished(result)
            if tuning.folds:
                cross = cross_validate(objective, split, tuning, self._search)
            if tuning.class_key is not None:
                per_type = tune_by_class(evaluation, chosen, self._search_class, tuning.class_key)
            show = partial(self.progress, f"{self.dataset.name}: quality against effort")
            search = ParetoSearch(evaluation, self.dataset.provenance, self._log(FRONT_LOG), show)
            front = search.run(result, chosen)
        except KeyboardInterrupt:
            result = replace(result, interrupted=True)
        return SearchOutcome(result, chosen, cross, per_type, front)

    def _log(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / name

    def _search_class(self, name: str, objective: TuningObjective, keep: BoolArray) -> SearchResult:
        """Search on the queries of one type or intent."""
        self.progress(f"{self.dataset.name}: {name}", 0, 1)
        return _check_finished(run_search(objective, keep, self.tuning.search_settings()))

    def _search(self, keep: BoolArray, fold: int) -> SearchResult:
        """Search on these queries; fold 0 = all tuning queries."""
        # Its own seed: with the same first trials, folds would seem to agree more than they do.
        seed = self.tuning.seed + fold
        settings = self.tuning.search_settings().model_copy(update={"seed": seed})
        where = f"fold {fold} of {self.tuning.folds}, " if fold else ""
        total = settings.trials

        def show_best(trial: Trial, best: Trial) -> None:
            text = f"{self.dataset.name}: {where}best {best.value:.4f}"
            self.progress(text, trial.number + 1, max(total, trial.number + 1))

        if self.storage is not None:
            from fusion_bench.tune.shared_study import search_shared_study  # imports Optuna

            result = search_shared_study(
                self.objective, keep, settings, self.storage, on_trial=show_best
            )
        else:
            log = self._log(FOLD_LOG.format(fold) if fold else LOG)
            result = run_search(self.objective, keep, settings, on_trial=show_best, log=log)
        return _check_finished(result) if fold else result


def _check_finished(result: SearchResult) -> SearchResult:
    """The result of a search that was not interrupted.

    Raises:
        KeyboardInterrupt: It was interrupted: what would follow it does not.
    """
    if result.interrupted:
        raise KeyboardInterrupt
    return result
