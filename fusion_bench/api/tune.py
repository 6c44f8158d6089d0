"""Tune a system on data at hand; gate it or export it, as the commands do."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fusion_bench.api.fuse import SystemLike, build_system, default_name, warn_of_skipped_lists
from fusion_bench.api.inputs import (
    DATA_OPTIONS,
    Roles,
    dataset_folder,
    explain_roles,
    is_path,
    list_measures,
    pop_settings,
    read_dataset,
    refuse_measure_words,
)
from fusion_bench.api.results import ResultView
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import ObstacleKind, allow_obstacles
from fusion_bench.config.plugin_files import loaded_plugins
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import ScoreSpace
from fusion_bench.engines.export import ExportData, export_experiment, export_system
from fusion_bench.engines.options import ExportOptions
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.export_records import ExportReport
from fusion_bench.evaluation.in_memory import make_experiment
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.experiment.dialect import find_engine
from fusion_bench.experiment.experiment import Experiment, experiment_file, read_experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.gate.baseline_files import list_plugins, read_baseline
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import update_baseline
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.dataset_config import find_folders
from fusion_bench.measures.aliases import resolve_alias
from fusion_bench.report.tuning_page import tuning_findings
from fusion_bench.report.tuning_records import Recommendation, TuningReport, Value
from fusion_bench.stats.comparison import Comparison
from fusion_bench.tune.abstain import fit_threshold
from fusion_bench.tune.held_out import evaluate_untuned
from fusion_bench.tune.looks import find_ledger
from fusion_bench.tune.objective import TuningObjective, create_objective, express_in_engine
from fusion_bench.tune.search import Trial, TrialOrigin
from fusion_bench.tune.tuning_run import TuningRun
from fusion_bench.util.files import baseline_path
from fusion_bench.util.formatting import Columns

if TYPE_CHECKING:
    from optuna.study import Study


class ChosenParameters(dict[str, Value]):
    """Values by path; shown, they say if the run does not recommend them."""

    def __init__(self, values: Mapping[str, Value], advice: Recommendation) -> None:
        super().__init__(values)
        self._advice = advice

    def __repr__(self) -> str:
        if self._advice.kind == "use tuned":
            return super().__repr__()
        return f"{super().__repr__()}  # not recommended: {self._advice.sentence}"


@dataclass(frozen=True, eq=False, repr=False)
class TuningResult(ResultView):
    """The result of a tuning run: the chosen parameters, and their test against the default.

    Attributes:
        report: Everything that was found, as ``fusion-bench tune`` writes it.
        objective: What was tuned, on all judged queries.
    """

    report: TuningReport
    objective: TuningObjective

    @property
    def recommendation(self) -> Recommendation:
        """Return what to do: ``kind``, ``name`` of the system to use, ``sentence``."""
        return self.report.advice

    @property
    def verdict(self) -> str:
        """Against the default: ``ship``, ``keep``, ``worse`` or ``too few queries``."""
        return self.report.verdict

    @property
    def explanation(self) -> str:
        """The verdict, what the system to use does, and what the search changed."""
        verdict = tuning_findings(self.report)[0]
        return " ".join((verdict.text, *verdict.details))

    @property
    def parameters(self) -> ChosenParameters:
        """The chosen values by path, such as ``fusion.k``."""
        return ChosenParameters(self.report.choice.params, self.recommendation)

    @property
    def system(self) -> System:
        """The tuned system, for ``fuse`` and ``compare``."""
        name = f"{self.report.system} tuned"
        return System.model_validate({**self.report.tuned_config, "name": name})

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
        from fusion_bench.tune.shared_study import build_study  # imports Optuna

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

    def _summary(self) -> str:
        chosen = (
            f"{path} {value:.4g}" if isinstance(value, float) else f"{path} {value}"
            for path, value in self.parameters.items()
        )
        sentence = self.recommendation.sentence
        return f"TuningResult({sentence!r}: {', '.join(chosen)})\n{self.comparison!r}"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a trial."""
        return self.report._table_columns(limit)


#: Keys of an experiment that tuning reads; all other options are those of ``tune:``.
EXPERIMENT_OPTIONS = frozenset({"alpha", "ties"})


def tune(
    qrels: object,
    runs: object = None,
    system: SystemLike = "rrf",
    *,
    trials: int = 200,
    measure: object = "nDCG@10",
    space: Mapping[str, object] | None = None,
    rerankers: object = None,
    score_spaces: Mapping[str, ScoreSpace] | None = None,
    queries: object = None,
    roles: Roles | None = None,
    allow_unmatched: bool = False,
    allow_suspect: bool = False,
    **options: Any,  # noqa: ANN401 - the models check them
) -> TuningResult:
    """Tune a system's parameters, and test the gain on queries that did not choose them.

    Half of the queries are held out, unless the dataset has splits of its own.

    Args:
        qrels: Judgments, or a dataset, in any form that ``compare`` takes. A dataset's own splits
            ``dev`` and ``test`` are used where it has them.
        runs: Runs by name, a list of runs, or names of a dataset's runs.
        system: What is tuned, and the default to beat: a method's name, ``(method, parameters)``,
            what ``rrf(…)`` or ``weighted(…)`` return, or a ``System``.
        trials: How many parameter sets are tried.
        measure: What is maximized.
        space: What to search of the fusion, by parameter: ``(least, greatest)`` or a list of
            values; by default what the methods declare. A function of one's own declares nothing.
        rerankers: Rerank lists by name, for a ``blend``.
        score_spaces: What the numbers of each rerank list mean; guessed from them by default.
        queries: Types, groups and splits: a path, or ``{id: …}``.
        roles: Role or roles of a run by its name, as for ``compare``.
        allow_unmatched: Go on although document ids do not meet.
        allow_suspect: Go on although a check finds a list false.
        options: Keys of ``tune:`` (``parameters``, ``sampler``, ``seed``, ``folds``, ``held_out``,
            ``min_gain``, ``timeout``, ``looks``, …), ``alpha``, ``ties``, and of a dataset
            ``binary_relevance``, ``groups``, ``judgments``; how files are read, as for ``compare``.

    Returns:
        The verdict, the parameters, Optuna's study, and the comparison on held-out queries; after
        an interrupt, of what was tried so far.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        FusionBenchError: Something breaks a rule, or there are too few queries to split; says what.
    """
    refuse_measure_words(options, "tune", "measure")
    data = {key: options.pop(key) for key in DATA_OPTIONS & set(options)}
    general = {key: options.pop(key) for key in EXPERIMENT_OPTIONS & set(options)}
    dataset = read_dataset(
        *(qrels, runs),
        rerankers=rerankers,
        score_spaces=score_spaces,
        queries=queries,
        settings=pop_settings(options),
        **data,
    ).with_roles(roles)
    chosen = build_system(default_name(system), system, dataset.runs)
    measures = list_measures(measure)
    beside = [name for name in DEFAULT_MEASURES if name not in map(resolve_alias, measures)]
    experiment, source = make_experiment(
        "tune",
        {chosen.name: chosen},
        dataset=dataset.name,
        measures=[*measures, *beside[:1]],
        **general,
    )
    known_roles = {name: run.roles for name, run in dataset.runs.items()}
    with explain_roles():
        experiment.check_datasets(known_roles, tuple(dataset.rerankers), source)
    warn_of_skipped_lists(chosen, known_roles)
    if space is not None:
        ranges: dict[str, object] = {}
        for name, values in space.items():
            if isinstance(values, tuple) and len(values) == 2:
                numbers = (*values, getattr(chosen.fusion, name, None))
                is_whole = all(type(number) is int for number in numbers)
                ranges[f"fusion.{name}"] = {"low": values[0], "high": values[1], "int": is_whole}
            else:
                is_list = isinstance(values, list | tuple)
                ranges[f"fusion.{name}"] = {"choices": values} if is_list else values
        options["parameters"] = ranges | dict(options.get("parameters") or {})
    given = {"trials": trials, "system": chosen.name, **options}
    settings = parse_model(TuneSettings, given, "tune")
    allowed = allow_obstacles(unmatched=allow_unmatched, suspect=allow_suspect)
    return _run(experiment, source, settings, dataset, dataset_folder(qrels), allowed)


def _run(
    experiment: Experiment,
    source: Source,
    settings: TuneSettings,
    dataset: Dataset,
    folder: Path | None,
    allowed: Collection[ObstacleKind],
) -> TuningResult:
    """Tune; ``folder`` is that of the dataset, None for data in memory."""
    for name in dataset.rerankers if settings.degraded == "refuse" else ():
        if (reason := dataset.degradation(name)) is not None:
            raise ConfigError(reason)
    experiment = express_in_engine(experiment, source, settings, dataset.spec.run_roles)
    objective = create_objective(experiment, source, settings, dataset)
    run = TuningRun(
        objective,
        dataset,
        settings,
        folder=None,
        alpha=experiment.alpha,
        looks=find_ledger(
            settings.looks, alpha=experiment.alpha, base=None, dataset=folder, out=None
        ),
        untuned=evaluate_untuned(experiment, source, dataset, objective, allowed=allowed),
    )
    report = run.run("tune", report_provenance(experiment, source))
    abstain = fit_threshold(experiment, source, settings, dataset, report)
    return TuningResult(report.model_copy(update={"abstain": abstain}), objective)


def gate(
    experiment: str | os.PathLike[str],
    *,
    baseline: str | os.PathLike[str] | None = None,
    update: str | None = None,
    anchor: bool = False,
    folders: Collection[str | os.PathLike[str]] | None = None,
    base: str | None = None,
    changes: Sequence[str] = (),
    plugins: Sequence[str | os.PathLike[str]] = (),
    allow_unmatched: bool = False,
    allow_suspect: bool = False,
) -> GateVerdict:
    """Check an experiment's candidate for regressions against its committed baseline.

    Args:
        experiment: The experiment's file.
        baseline: File of the baseline; ``reports/baselines/EXPERIMENT.json`` by default.
        update: Why the values may change: the candidate becomes the baseline before it is checked.
        anchor: With ``update``: whether the candidate becomes the anchor, too.
        folders: Where named datasets live; by default ``datasets`` beside the experiment's folder,
            here, and in the folders above.
        base: The commit that the change starts from: a baseline that is the same there is trusted
            where changed lists cannot reproduce it.
        changes: ``KEY=VALUE`` each, such as ``systems.rrf.fusion.k=20``: values that replace those
            of the experiment; not with ``update``.
        plugins: Python files to execute for this run, as ``--plugin`` does: without ``update`` only
            those that the baseline names.
        allow_unmatched: Go on although document ids do not meet.
        allow_suspect: Go on although a check finds a list false.

    Returns:
        The verdict: ``headline``, ``checks``, ``exit_code``, …; writes no file without ``update``
        or ``candidates``.

    Raises:
        FusionBenchError: The experiment, its data or the baseline's file breaks a rule.
    """
    path = experiment_file(Path(experiment))
    file = baseline_path(path) if baseline is None else Path(baseline)
    known = list_plugins(read_baseline(file, path)) if plugins and update is None else None
    with loaded_plugins([*map(Path, plugins)], known):
        if changes and update is not None:
            raise ConfigError("changes: not with update: a baseline is of a committed file")
        parsed, source = read_experiment(path, overrides=tuple(changes))
        allowed = allow_obstacles(unmatched=allow_unmatched, suspect=allow_suspect)
        inputs = GateInputs(parsed, source, find_folders(folders, path), allowed=allowed)
        if update is not None:
            update_baseline(inputs, file, update, anchor=anchor)
        return run_gate(inputs, file, base)


#: Suffixes of an experiment's file.
YAML = {".yaml", ".yml"}


def export(
    system: object,
    to: str,
    *,
    name: str | None = None,
    dataset: object = None,
    query_type: str | None = None,
    intent: str | None = None,
    vector: Collection[str] = (),
    replay: bool | None = None,
    folders: Collection[str | os.PathLike[str]] | None = None,
    **options: Any,  # noqa: ANN401 - the models check them
) -> ExportReport:
    """Write a system in an engine's own configuration, and say how well that works.

    Args:
        system: A ``System``, what ``tune`` returned, or an experiment's file or folder.
        to: The engine: ``elasticsearch``, ``qdrant``, ``langchain``, …
        name: Of the system in the experiment's file.
        dataset: Gives the roles of the sources, and is replayed on: a dataset in any form that
            ``compare`` takes. Of an experiment's file, by name or path; its own by default.
        query_type: Write the numbers of this query type.
        intent: Write the numbers of this intent.
        vector: Lists that are vector searches, if they have no role.
        replay: Whether to replay what is written on the dataset; by default where it is
            approximate.
        folders: Where named datasets live, for an experiment's file.
        options: Keys of an experiment for the replay: ``measures``, ``split``, ``alpha``, …

    Returns:
        ``fidelity``, ``reasons``, ``notes``, ``files`` by name, ``replays``; ``write(folder)``
        writes the files.

    Raises:
        FusionBenchError: Something breaks a rule; says what.

    >>> from fusion_bench import System
    >>> system = System("s", ["bm25", "dense"], depth=50, top_k=10)
    >>> report = export(system, "elasticsearch", vector=["dense"])
    >>> report.fidelity, list(report.files)
    ('exact', ['search.json'])
    """
    find_engine(to, where="to")
    asked = ExportOptions(
        engine=to,
        system=name,
        dataset=None if dataset is None else str(dataset),
        query_type=query_type,
        intent=intent,
        vector=tuple(vector),
        replay=replay,
    )
    path = experiment_file(Path(system)) if is_path(system) else Path()
    if path.suffix.lower() in YAML:
        experiment, source = read_experiment(path)
        if options:
            raise ConfigError(
                f"{', '.join(options)}: given by the experiment's file: change it there"
            )
        places = find_folders(folders, path)
        return export_experiment(experiment, source, asked, folders=places)
    given: Any = system.system if isinstance(system, TuningResult) else system
    opened = None if dataset is None else read_dataset(dataset, needs_judgments=False)
    runs = {} if opened is None else opened.runs
    built = build_system(asked.system or default_name(given), given, runs)
    listed: dict[str, Any] = {
        k: list_measures(v) if k == "measures" else v for k, v in options.items()
    }
    experiment, source = make_experiment(
        "export", {built.name: built}, dataset="none" if opened is None else opened.name, **listed
    )
    if opened is None:
        return export_system(experiment, source, built, ExportData({}), asked)
    roles = {run: frozenset(item.roles) for run, item in opened.runs.items()}
    experiment.check_datasets(roles, tuple(opened.rerankers), source)
    conditions = {name: run.when for name, run in opened.spec.runs.items() if run.when}
    data = ExportData(roles, lambda _: [opened], conditions, opened.is_judged)
    return export_system(experiment, source, built, data, asked)
