"""The whole of ``tune``: for each dataset split, search, cross-validate, evaluate and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_source import Source
from fusion_bench.data.ordering import BoolArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.report_records.lint_finding import LintFinding
from fusion_bench.evaluation.report_records.report import Provenance
from fusion_bench.evaluation.run_experiment import (
    Progress,
    find_datasets,
    ignore_progress,
    read_distinct_specs,
    report_provenance,
)
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.lint import describe_dataset, lint_systems
from fusion_bench.report.tuning_records.pareto_front import ParetoFront
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.report.write import write_tuning
from fusion_bench.tune.export_experiment import relocate_dataset, tuned_experiment
from fusion_bench.tune.looks.find_ledger import find_ledger
from fusion_bench.tune.looks.frozen_numbers import frozen_split, frozen_trials
from fusion_bench.tune.looks.held_out_look import held_out_queries, open_held_out_look
from fusion_bench.tune.looks.look_counter import UNCOUNTED, LookCounter
from fusion_bench.tune.options import TuneOptions
from fusion_bench.tune.pareto.pareto_search import ParetoSearch
from fusion_bench.tune.search.search import SearchResult, run_search
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import (
    ObjectivePaths,
    create_objective,
    load_tuning_dataset,
)
from fusion_bench.tune.validation.class_tuning import ClassTuning
from fusion_bench.tune.validation.cross_fitting import CrossFit
from fusion_bench.tune.validation.cross_validation import CrossValidation, cross_validate
from fusion_bench.tune.validation.fit_all_queries import fit_all_queries
from fusion_bench.tune.validation.floor import (
    UntunedValues,
    evaluate_untuned,
    load_all_lists,
)
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.per_query_class import tune_by_class
from fusion_bench.tune.validation.splits import split_queries
from fusion_bench.tune.validation.trial_selection import choose_trial
from fusion_bench.util.output_folder import name_experiment

#: The logs of the search on all tuning queries, of each fold's, and of the front's.
LOG, FOLD_LOG, FRONT_LOG = "trials.jsonl", "trials-fold-{}.jsonl", "trials-front.jsonl"


def run_tuning(
    experiment: Experiment, source: Source, options: TuneOptions
) -> Iterator[tuple[TuningReport, list[Path]]]:
    """Tune an experiment's system on each of its datasets, and write the reports.

    Args:
        experiment: The experiment.
        source: The file that it was read from, with the values that replace the file's.
        options: All else.

    Yields:
        The report of each dataset and the files written; an interrupted one is the last.

    Raises:
        FusionBenchError: A file or an option breaks a rule.
    """
    tuning = _merge_settings(experiment, source, options.overrides)
    for name, file, folder in _list_datasets(experiment, source, options):
        with options.progress() as progress:
            progress(f"reading {name}", 0, 1)
            dataset = load_tuning_dataset(experiment, source, tuning, file)
            objective = create_objective(experiment, source, tuning, dataset)
            opened = source.path.resolve(), file.resolve()
            paths = ObjectivePaths(
                *opened,
                tuning,
                v2_enabled=experiment.v2_enabled,
                overrides=source.override_texts,
            )
            with options.distribute(objective, paths) as distributed:
                run = TuningRun(
                    distributed,
                    dataset,
                    tuning,
                    folder,
                    alpha=experiment.alpha,
                    storage=options.storage,
                    export=options.export,
                    progress=progress,
                    ignored=experiment.lint.ignore,
                    looks=find_ledger(
                        tuning.looks,
                        alpha=experiment.alpha,
                        base=source.path.parent,
                        dataset=file.parent,
                        out=folder,
                    ),
                    untuned=evaluate_untuned(
                        experiment,
                        source,
                        load_all_lists(experiment, dataset, file, progress),
                        objective,
                    ),
                )
                report = run.run(
                    name_experiment(source.path), report_provenance(experiment, source)
                )
            progress("writing the report", 1, 1)
            tuned = tuned_experiment(experiment, report, relocate_dataset(name, file, folder))
            plots = options.plots
            files = write_tuning(
                report, folder, tuned=tuned, plots=plots, plot_format=options.plot_format
            )
        yield report, files
        if report.interrupted:
            return


def _list_datasets(
    experiment: Experiment, source: Source, options: TuneOptions
) -> list[tuple[str, Path, Path]]:
    """How the experiment names each dataset, its ``dataset.yaml``, and the folder of its outputs.

    Raises:
        ConfigError: Two datasets have the same name.
        UnknownNameError: There is none of that name.
    """
    datasets = list(find_datasets(experiment, source, options.folders))
    names = [spec.name for spec in read_distinct_specs(file for _, file in datasets)]
    is_single = experiment.dataset is not None
    return [
        (given, file, options.out if is_single else options.out / name)
        for (given, file), name in zip(datasets, names, strict=True)
    ]


def _merge_settings(
    experiment: Experiment, source: Source, overrides: Mapping[str, object]
) -> TuneSettings:
    """The experiment's ``tune:`` with the overrides.

    Raises:
        ConfigError: No system is named, or a value breaks a rule.
    """
    data = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    data |= {key: value for key, value in overrides.items() if value is not None}
    if "system" not in data:
        raise ConfigError(
            f"{source.path}: has no 'tune': add 'tune: {{system: NAME}}', or name one with --system"
        )
    if data["system"] not in experiment.systems:
        raise UnknownNameError("system", data["system"], experiment.systems, where="--system")
    data.setdefault("seed", experiment.seed)
    data.setdefault("min_gain", experiment.min_gain)
    return parse_model(TuneSettings, data, lambda place: "tune." + ".".join(map(str, place)))


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """All that was searched before the held-out queries are looked at.

    Attributes:
        result: The search on all tuning queries.
        chosen: Of its trials.
        cross: The nested cross-validation; None = not asked for.
        per_type: Parameters by query type or intent; None = not asked for.
        front: Quality against rerank effort; None = not asked for.
    """

    result: SearchResult
    chosen: Trial
    cross: CrossValidation | None = None
    per_type: ClassTuning | None = None
    front: ParetoFront | None = None

    @property
    def tests_a_change(self) -> bool:
        """Whether the held-out queries decide on more than the default."""
        return self.chosen is not self.result.default_trial or self.per_type is not None


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
    looks: LookCounter = UNCOUNTED
    untuned: UntunedValues | None = None

    def run(self, name: str, provenance: Provenance) -> TuningReport:
        """Search, cross-validate, evaluate.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        objective, tuning = self.objective, self.tuning
        split = split_queries(
            objective.runs,
            self.dataset.queries,
            split_seed=tuning.split_seed,
            held_out=tuning.held_out,
        )
        plan = self.looks.find_plan(held_out_queries(objective, split))
        if plan is not None:
            split = frozen_split(objective, split, plan)
        evaluation = HeldOutEvaluation(objective, split, tuning, self.alpha)
        if plan is None:
            outcome = self._search_all(evaluation, name)
        else:
            outcome = SearchOutcome(*frozen_trials(objective, split, plan))
        self.progress(f"{self.dataset.name}: evaluating", 1, 1)
        report = self._evaluate(evaluation, outcome, name, provenance)
        return report.model_copy(update={"lint": self._lint_systems(report)})

    def _search_all(self, evaluation: HeldOutEvaluation, name: str) -> SearchOutcome:
        """Search on the tuning queries, by fold, by class, and for the front."""
        evaluation.check_feasible()
        objective, split, tuning = evaluation.objective, evaluation.split, self.tuning
        result = self._search(split.tune, 0)
        if self.export is not None:
            from fusion_bench.tune.search.export_study import export_search  # imports Optuna

            export_search(result, objective, self.export, f"{name} on {self.dataset.name}")
        chosen = choose_trial(objective, result, split.tune, tuning.choose)
        cross = per_type = front = None
        try:
            _check_finished(result)
            if split.is_cross_fitted:
                return SearchOutcome(result, chosen)
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

    def _evaluate(
        self,
        evaluation: HeldOutEvaluation,
        outcome: SearchOutcome,
        name: str,
        provenance: Provenance,
    ) -> TuningReport:
        """Count the look at the held-out queries, take it, and note its verdict."""
        look = fit = None
        if evaluation.split.is_cross_fitted and outcome.tests_a_change:
            fit = self._cross_fit(evaluation, outcome)
        if outcome.tests_a_change or self.tuning.crag is not None:
            look = open_held_out_look(
                self.looks,
                evaluation,
                outcome.chosen,
                outcome.per_type,
                fit=fit,
                experiment=name,
                date=provenance.created,
            )
            evaluation = replace(evaluation, level=look.level, next_factor=look.next_factor)
            fit = fit and self._cross_fit(evaluation, outcome)
        report = evaluation.make_report(
            outcome.result,
            outcome.chosen,
            outcome.cross,
            name=name,
            dataset=self.dataset,
            provenance=provenance,
            per_type=outcome.per_type,
            front=outcome.front,
            fit=fit,
            untuned=self.untuned,
        )
        return report if look is None else look.close(report)

    def _cross_fit(self, evaluation: HeldOutEvaluation, outcome: SearchOutcome) -> CrossFit:
        """The gain over all queries, at the level of the evaluation."""
        return fit_all_queries(
            evaluation.objective,
            evaluation.split,
            self.tuning,
            outcome.result,
            level=evaluation.verdict_level,
        )

    def _lint_systems(self, report: TuningReport) -> tuple[LintFinding, ...]:
        """What lint finds in the default and in the tuned system."""
        systems = [
            parse_model(System, {**config, "name": name})
            for name, config in ((report.system, report.default), ("tuned", report.choice.config))
        ]
        facts = [describe_dataset(self.dataset)]
        findings = lint_systems(systems, facts, ignored=self.ignored)
        return tuple(item.to_finding(None) for item in findings)

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
            from fusion_bench.tune.search.shared_study import search_shared_study  # imports Optuna

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
