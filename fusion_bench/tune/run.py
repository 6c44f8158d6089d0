"""The whole of ``tune`` on one dataset: split, search, cross-validate, evaluate."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fusion_bench.evaluation.report_records import Provenance
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io import Dataset
from fusion_bench.report.tuning_records import Front, TuningReport
from fusion_bench.stats.intervals import IntervalMethod
from fusion_bench.tune.pareto.pareto_search import ParetoSearch
from fusion_bench.tune.search.optuna_storage import export_search
from fusion_bench.tune.search.search import SearchResult, run_search
from fusion_bench.tune.search.shared_study import search_shared_study
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.cross_validation import cross_validate
from fusion_bench.tune.validation.held_out import HeldOutEvaluation
from fusion_bench.tune.validation.per_query_type import tune_by_type
from fusion_bench.tune.validation.splits import BoolArray, split_queries

__all__ = ["Progress", "TuningRun"]

#: Called with what is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]
#: The record of the search on all tuning queries, and of each fold's.
LOG, FOLD_LOG, FRONT_LOG = "trials.jsonl", "trials-fold-{}.jsonl", "trials-front.jsonl"


@dataclass(frozen=True, eq=False)
class TuningRun:
    """One dataset's way from its settings to a verdict.

    Attributes:
        objective: What is tuned.
        dataset: On what.
        tuning: As the experiment and the command line say.
        folder: Where the records of the searches are kept.
        alpha: Level of intervals and tests.
        interval: ``t`` or ``bootstrap``.
        storage: A database through which other machines take part; None = this one alone.
        export: A database that the finished search is copied to.
        progress: Called as the work goes on.
    """

    objective: TuningObjective
    dataset: Dataset
    tuning: TuneSettings
    folder: Path
    alpha: float = 0.05
    interval: IntervalMethod = "t"
    storage: str | None = None
    export: str | None = None
    progress: Progress = field(default=lambda _stage, _done, _total: None)

    def __call__(self, name: str, provenance: Provenance) -> TuningReport:
        """Search, cross-validate, evaluate.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        tuning = self.tuning
        split = split_queries(
            self.objective.runs,
            self.dataset.queries,
            split_seed=tuning.split_seed,
            held_out=tuning.held_out,
        )
        evaluation = HeldOutEvaluation(self.objective, split, tuning, self.alpha, self.interval)
        evaluation.check_feasible()
        result = self._search(split.tune, 0)
        if self.export is not None:
            export_search(result, self.objective, self.export, f"{name} on {self.dataset.name}")
        chosen = evaluation.choose_trial(result)
        cross = per_type = front = None
        try:
            _check_finished(result)
            if tuning.folds:
                folds = itertools.count(1)
                cross = cross_validate(
                    self.objective, split, tuning, lambda keep: self._search(keep, next(folds))
                )
            if tuning.by_query_type:
                per_type = tune_by_type(evaluation, chosen, self._search_type)
            front = self._front(evaluation, result, chosen)
        except _SearchStoppedError:
            result = replace(result, interrupted=True)
        if front is not None and front.interrupted:
            result = replace(result, interrupted=True)
        self.progress(f"{self.dataset.name}: judging", 1, 1)
        return evaluation.make_report(
            result,
            chosen,
            cross,
            name=name,
            dataset=self.dataset,
            provenance=provenance,
            per_type=per_type,
            front=front,
        )

    def _front(
        self, evaluation: HeldOutEvaluation, result: SearchResult, chosen: Trial
    ) -> Front | None:
        """Quality against rerank effort."""
        text = f"{self.dataset.name}: quality against effort"
        search = ParetoSearch(
            evaluation,
            self.dataset.provenance,
            self.folder / FRONT_LOG,
            lambda done, total: self.progress(text, done, total),
        )
        return search.run(result, chosen)

    def _search_type(self, name: str, objective: TuningObjective, keep: BoolArray) -> SearchResult:
        """Search on the queries of one type."""
        self.progress(f"{self.dataset.name}: type {name}", 0, 1)
        return _check_finished(run_search(objective, keep, self.tuning.search_settings()))

    def _search(self, keep: BoolArray, fold: int) -> SearchResult:
        """Search on these queries; fold 0 = all tuning queries."""
        # Its own seed: with the same first trials, folds would seem to agree more than they do.
        seed = self.tuning.seed + fold
        settings = self.tuning.search_settings().model_copy(update={"seed": seed})
        where = f"fold {fold} of {self.tuning.folds}, " if fold else ""
        total = settings.trials

        def show(trial: Trial, best: Trial) -> None:
            text = f"{self.dataset.name}: {where}best {best.value:.4f}"
            self.progress(text, trial.number + 1, max(total, trial.number + 1))

        if self.storage is not None:
            result = search_shared_study(
                self.objective, keep, settings, self.storage, on_trial=show
            )
        else:
            log = self.folder / (FOLD_LOG.format(fold) if fold else LOG)
            result = run_search(self.objective, keep, settings, on_trial=show, log=log)
        return _check_finished(result) if fold else result


class _SearchStoppedError(Exception):
    """Somebody pressed Ctrl-C in a search that others would follow."""


def _check_finished(result: SearchResult) -> SearchResult:
    """The result, unless it was stopped: then nothing more is searched.

    Raises:
        _StoppedError: It was.
    """
    if result.interrupted:
        raise _SearchStoppedError
    return result
