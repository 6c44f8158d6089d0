"""Tune a system on data that is at hand, and test the gain on held-out queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from fusion_bench.api.datasets import read_dataset
from fusion_bench.api.inputs import list_measures
from fusion_bench.api.systems import SystemLike, build_system, default_name
from fusion_bench.config.models import Location, Source, parse_model
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.io.dataset import Dataset
from fusion_bench.report.tuning.findings import tuning_findings
from fusion_bench.report.tuning_records.trials import Value
from fusion_bench.report.tuning_records.tuning_report import TuningReport
from fusion_bench.stats.comparison import Comparison
from fusion_bench.tune.run import TuningRun
from fusion_bench.tune.search.trial_log import Trial, TrialOrigin
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.space.open_objective import create_objective
from fusion_bench.util.table_view import Columns, TableView

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing
    from optuna.study import Study

#: Keys of an experiment that tuning reads; all other options are those of ``tune:``.
EXPERIMENT_OPTIONS = frozenset({"alpha", "interval", "ties"})
#: Options that describe the data.
DATA_OPTIONS = frozenset({"binary_relevance", "judgments"})


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult(TableView):
    """What a tuning run chose, and whether it is better than the default.

    Attributes:
        report: Everything that was found, as ``fusion-bench tune`` writes it.
        objective: What was tuned, on all judged queries.
    """

    report: TuningReport
    objective: TuningObjective

    @property
    def verdict(self) -> str:
        """``ship``, ``keep``, ``worse`` or ``too few queries``: decided on held-out queries."""
        return self.report.verdict

    @property
    def explanation(self) -> str:
        """The verdict and its numbers in a few sentences."""
        return next(f.text for f in tuning_findings(self.report) if f.key == "verdict")

    @property
    def parameters(self) -> dict[str, Value]:
        """The chosen values by path, such as ``fusion.k``."""
        return dict(self.report.choice.params)

    @property
    def system(self) -> System:
        """The tuned system, for ``fuse`` and ``compare``."""
        name = f"{self.report.system} tuned"
        return System.model_validate({**self.report.choice.config, "name": name})

    @property
    def comparison(self) -> Comparison:
        """The tuned system against the default on the held-out queries; this decides."""
        gain = self.report.held_out
        return Comparison(
            measure=self.report.measure,
            baseline=self.report.system,
            candidate=f"{self.report.system} tuned",
            baseline_mean=gain.default,
            candidate_mean=gain.tuned,
            difference=gain.difference,
            low=math.nan if gain.low is None else gain.low,
            high=math.nan if gain.high is None else gain.high,
            p=gain.p,
            p_holm=None,
            wins=gain.wins,
            ties=gain.ties,
            losses=gain.losses,
            min_detectable_difference=None,
            queries=gain.queries,
            groups=gain.groups,
        )

    @cached_property
    def study(self) -> Study:
        """The search as a study of Optuna, with ``origin`` and ``config`` of each trial."""
        from fusion_bench.tune.search.export_study import build_study  # imports Optuna

        trials = [
            Trial(
                trial.number,
                dict(trial.params),
                math.nan if trial.value is None else trial.value,
                cast("TrialOrigin", trial.origin),
            )
            for trial in self.report.trials
        ]
        return build_study(trials, self.objective, f"{self.report.system} on {self.report.dataset}")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``tuning.json`` has it."""
        return self.report.model_dump(mode="json")

    def plot(self, kind: str | None = None) -> Drawing:
        """The first figure of the report, or the first of one kind; see :func:`plot`."""
        from fusion_bench.api.plot import plot

        return plot(self, kind)

    def _summary(self) -> str:
        chosen = ", ".join(f"{path} {_shorten(value)}" for path, value in self.parameters.items())
        return f"TuningResult({self.verdict!r}: {chosen})\n{self.comparison!r}"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a trial."""
        return self.report._table_columns(limit)


def _shorten(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def tune(
    qrels: object,
    runs: object = None,
    system: SystemLike = "rrf",
    *,
    trials: int = 200,
    measure: object = "nDCG@10",
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> TuningResult:
    """Tune a system's parameters on half of the queries, and test the gain on the other half.

    Args:
        qrels: Judgments, or a dataset, in any form that ``compare`` takes. A dataset's own splits
            ``dev`` and ``test`` are used where it has them.
        runs: Runs by name, a list of runs, or names of a dataset's runs.
        system: What is tuned, and the default to beat: a method's name, ``(method, parameters)``,
            what ``rrf(…)`` or ``weighted(…)`` return, or a ``System``.
        trials: How many parameter sets are tried.
        measure: What is maximized.
        rerankers: Rerank lists by name, for a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups and splits: a path, or ``{id: …}``.
        options: Keys of ``tune:`` (``parameters``, ``sampler``, ``seed``, ``folds``, ``held_out``,
            ``min_gain``, ``timeout``, …), ``alpha``, ``interval``, ``ties``, and of a dataset
            ``binary_relevance``, ``judgments``.

    Returns:
        The verdict, the parameters, Optuna's study, and the comparison on held-out queries; after
        an interrupt, of what was tried so far.

    Raises:
        FusionBenchError: Something breaks a rule, or there are too few queries to split; says what.
    """
    data = {key: options.pop(key) for key in DATA_OPTIONS & set(options)}
    general = {key: options.pop(key) for key in EXPERIMENT_OPTIONS & set(options)}
    dataset = read_dataset(
        qrels, runs, rerankers=rerankers, score_spaces=score_spaces, queries=queries, **data
    )
    chosen = build_system(default_name(system), system, list(dataset.runs))
    experiment, source = make_experiment(
        "tune",
        {chosen.name: chosen},
        dataset=dataset.name,
        measures=list_measures(measure),
        **general,
    )
    roles = {name: run.roles for name, run in dataset.runs.items()}
    experiment.check_datasets(roles, tuple(dataset.rerankers), source)
    settings = _parse_settings({"trials": trials, "system": chosen.name, **options})
    return _run(experiment, source, settings, dataset)


def _parse_settings(given: Mapping[str, object]) -> TuneSettings:
    def where(location: Location) -> str:
        return ".".join(("tune", *map(str, location)))

    return parse_model(TuneSettings, given, where)


def _run(
    experiment: Experiment, source: Source, settings: TuneSettings, dataset: Dataset
) -> TuningResult:
    for name in dataset.rerankers if settings.degraded == "refuse" else ():
        if (reason := dataset.degradation(name)) is not None:
            raise ConfigError(reason)
    objective = create_objective(experiment, source, settings, dataset)
    run = TuningRun(
        objective,
        dataset,
        settings,
        folder=None,
        alpha=experiment.alpha,
        interval=experiment.interval,
    )
    return TuningResult(run.run("tune", report_provenance(experiment, source)), objective)
