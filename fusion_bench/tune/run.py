"""The whole of ``tune`` on one dataset: split, search, cross-validate, judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fusion_bench.evaluation.report_records import Provenance
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io import Dataset
from fusion_bench.report.tuning import TuningReport
from fusion_bench.report.tuning.tuning_records import Front
from fusion_bench.stats.intervals import Interval
from fusion_bench.tune.pareto.pareto_search import ParetoSearch
from fusion_bench.tune.search.processes import Evaluate
from fusion_bench.tune.search.search import SearchResult, run_search
from fusion_bench.tune.search.shared_study import export, shared_search
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
    """One dataset's way from its problem to a verdict.

    Attributes:
        problem: What is tuned.
        dataset: On what.
        tuning: As the experiment and the command line say.
        folder: Where the records of the searches are kept.
        alpha: Level of intervals and tests.
        interval: ``t`` or ``bootstrap``.
        workers: Processes that evaluate.
        storage: A database through which other machines take part; None = this one alone.
        export: A database that the finished search is copied to.
        spread: Makes another way to the values of a problem's queries where a mask is true, such
            as a cluster's; None = this machine's.
        progress: Called as the work goes on.
    """

    problem: TuningObjective
    dataset: Dataset
    tuning: TuneSettings
    folder: Path
    alpha: float = 0.05
    interval: Interval = "t"
    workers: int = 1
    storage: str | None = None
    export: str | None = None
    spread: Callable[[TuningObjective, BoolArray], Evaluate] | None = None
    progress: Progress = field(default=lambda _stage, _done, _total: None)

    def __call__(self, name: str, provenance: Provenance) -> TuningReport:
        """Search, cross-validate, judge.

        Args:
            name: Of the experiment.
            provenance: Of the run.
        """
        tuning = self.tuning
        split = split_queries(
            self.problem.runs, self.dataset.queries, salt=tuning.salt, held_out=tuning.held_out
        )
        judge = HeldOutEvaluation(self.problem, split, tuning, self.alpha, self.interval)
        judge.check_feasible()
        study = self._search(split.tune, 0)
        if self.export is not None:
            export(study, self.problem, self.export, f"{name} on {self.dataset.name}")
        chosen = judge.choose_trial(study)
        cross = typed = front = None
        try:
            _check_finished(study)
            folds = iter(range(1, tuning.folds + 1))
            cross = cross_validate(
                self.problem, split, tuning, lambda keep: self._search(keep, next(folds))
            )
            if tuning.by_query_type:
                typed = tune_by_type(judge, chosen, self._search_type)
            front = self._front(judge, study, chosen)
        except _SearchStoppedError:
            study = replace(study, interrupted=True)
        if front is not None and front.interrupted:
            study = replace(study, interrupted=True)
        self.progress(f"{self.dataset.name}: judging", 1, 1)
        return judge.make_report(
            study,
            chosen,
            cross,
            name=name,
            dataset=self.dataset,
            provenance=provenance,
            typed=typed,
            front=front,
        )

    def _front(self, judge: HeldOutEvaluation, study: SearchResult, chosen: Trial) -> Front | None:
        """Quality against rerank effort."""
        name = self.dataset.name
        find = ParetoSearch(
            judge,
            self.dataset.provenance,
            self.folder / FRONT_LOG,
            lambda done, total: self.progress(f"{name}: quality against effort", done, total),
        )
        return find(study, chosen)

    def _search_type(self, name: str, problem: TuningObjective, keep: BoolArray) -> SearchResult:
        """Search on the queries of one type."""
        self.progress(f"{self.dataset.name}: type {name}", 0, 1)
        settings, evaluate = self.tuning.search_settings(), self._evaluate(problem, keep)
        study = run_search(problem, keep, settings, workers=self.workers, evaluate=evaluate)
        return _check_finished(study)

    def _evaluate(self, problem: TuningObjective, keep: BoolArray) -> Evaluate | None:
        return None if self.spread is None else self.spread(problem, keep)

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
            study = shared_search(
                self.problem, keep, settings, self.storage, on_trial=show, workers=self.workers
            )
        else:
            log = self.folder / (FOLD_LOG.format(fold) if fold else LOG)
            study = run_search(
                self.problem,
                keep,
                settings,
                on_trial=show,
                log=log,
                workers=self.workers,
                evaluate=self._evaluate(self.problem, keep),
            )
        return _check_finished(study) if fold else study


class _SearchStoppedError(Exception):
    """Somebody pressed Ctrl-C in a search that others would follow."""


def _check_finished(study: SearchResult) -> SearchResult:
    """The study, unless it was stopped: then nothing more is searched.

    Raises:
        _StoppedError: It was.
    """
    if study.interrupted:
        raise _SearchStoppedError
    return study
