"""An experiment opened for the console; a setting saved as one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source, format_yaml
from fusion_bench.data.query_splits import split_queries
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.evaluation.prepared_dataset import ALL_JUDGED, prepare_dataset
from fusion_bench.experiment.experiment import Experiment, find_datasets
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import merge_rules
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.looks import record_shown
from fusion_bench.measures import parse_measure
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.serving.console.setting import (
    ControlPanel,
    Setting,
    SystemBuilder,
    SystemEvaluator,
)
from fusion_bench.tune.run import KEPT
from fusion_bench.util.files import write_atomic


def open_session(
    experiment: Experiment,
    source: Source,
    *,
    folders: Collection[Path],
    dataset: str | None = None,
    system: str | None = None,
) -> ConsoleSession:
    """Open an experiment for the console.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        folders: Where named datasets live.
        dataset: As the experiment names it; by default its only one, or its first.
        system: The system to start with; by default the tuned one, the gated one, or the baseline.

    Raises:
        FusionBenchError: A file breaks a rule, or a name is unknown.
    """
    names = dict(find_datasets(experiment, source, folders))
    name = dataset or experiment.dataset_names[0]
    if name not in names:
        raise UnknownNameError("dataset", name, names, where="--dataset")
    if system is not None:
        start = experiment.find_system(system).name
    elif experiment.tune is not None:
        start = experiment.tune.system
    else:
        gated = experiment.gated_system
        start = experiment.baseline if gated is None else gated.name
    spec, _ = read_spec(names[name])
    experiment.check_datasets(spec.run_roles, spec.rerank, source)
    used = {run for each in experiment.systems.values() for run in each.base_runs}
    loaded = load_dataset(names[name], runs=used, merged=merge_rules(experiment.systems.values()))
    return make_session(experiment, source, loaded, name=name, file=names[name], system=start)


def make_session(
    experiment: Experiment,
    source: Source,
    dataset: Dataset,
    *,
    name: str,
    file: Path,
    system: str,
) -> ConsoleSession:
    """The session on a dataset that is at hand.

    Args:
        experiment: The experiment.
        source: Where it was read from.
        dataset: With every list of the experiment's systems.
        name: How the experiment names it.
        file: Its ``dataset.yaml``.
        system: The system to start with.

    Raises:
        FusionBenchError: The experiment does not fit the dataset, or no query is left to tune on.
    """
    data = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    for key in ("by_query_type", "by_intent", "crag", "parameters"):
        data.pop(key, None)
    data |= {"system": system}
    data.setdefault("seed", experiment.seed)
    data.setdefault("min_gain", experiment.min_gain)
    tuning = parse_model(TuneSettings, data, "tune")
    whole = experiment.model_copy(update=dict(ALL_JUDGED))
    task = prepare_dataset(whole, source, dataset, is_shown=False)
    runs = task.runs.repeats[0]
    split = split_queries(
        runs, dataset.queries, split_seed=tuning.split_seed, held_out=tuning.held_out
    )
    shown = runs.subset(split.tune)
    record_shown(dataset.folder, dataset.qrels, shown.queries)
    measures = task.measures
    if tuning.measure is not None:  # it comes first
        primary = parse_measure(
            tuning.measure,
            binary_relevance=dataset.spec.binary_relevance,
            where=source.where(("tune", "measure")),
        )
        measures = (primary, *(measure for measure in measures if measure != primary))
    roles = dict(zip(runs.sources, runs.roles, strict=True))
    builder = SystemBuilder(experiment.systems, roles, sorted(dataset.rerankers))
    rerank_depth = int(shown.rerank_ranks.max(initial=0))
    greatest = np.max(shown.ranks, axis=1, initial=0).tolist()
    longest = {name: max(rank, 1) for name, rank in zip(shown.sources, greatest, strict=True)}
    return ConsoleSession(
        experiment=experiment,
        source=source,
        dataset=dataset,
        dataset_name=name,
        dataset_file=file,
        runs=runs,
        split=split,
        tuning=tuning,
        panel=ControlPanel(builder, longest, rerank_depth),
        evaluator=SystemEvaluator(shown, measures),
        system=system,
    )


#: File names without their suffix: no path, no hidden file, the same on every system.
FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: Settings of ``tune`` that do not fit another system.
NOT_KEPT: Final = frozenset({"system", "parameters", "by_query_type", "by_intent", "crag"})


class NameTakenError(FusionBenchError):
    """There is a file of that name, and nobody said to replace it."""


def save_setting(
    session: ConsoleSession,
    setting: Setting,
    name: str,
    *,
    overwrite: bool = False,
    write: bool = True,
) -> dict[str, Any]:
    """Write a setting as an experiment beside the one that is open.

    Args:
        session: The session.
        setting: The setting.
        name: Of the file, without ``.yaml``; the system gets it too.
        overwrite: Whether a file of that name may be replaced.
        write: False = only show what would be written.

    Returns:
        The file, its text, and the commands that go on from it.

    Raises:
        ConfigError: A name that is none, or that of the open experiment.
        NameTakenError: There is such a file.
        FusionBenchError: It cannot be written.
    """
    if not FILE_NAME.fullmatch(name):
        raise ConfigError(
            f"name: must be 1 to 64 letters, digits, - and _, the first a letter or a digit; given "
            f"{name!r:.100}"
        )
    folder = session.source.path.resolve().parent
    path = folder / f"{name}.yaml"
    system, _ = session.open_setting(setting)
    experiment, baseline = session.experiment, session.baseline
    title = name if name != baseline.name else f"{name} console"
    tune = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    kept = {key: value for key, value in tune.items() if key not in NOT_KEPT}
    scope = experiment.model_dump(mode="json", include={"split", "query_type", "where"})
    data: dict[str, Any] = {
        "description": f"{system.name} as set in the console on {session.dataset.name}.",
        "dataset": session.dataset_name,
        "baseline": baseline.name,
        **experiment.model_dump(mode="json", include=set(KEPT)),
        **{key: value for key, value in scope.items() if value},
        "systems": {baseline.name: baseline.resolved_config, title: system.resolved_config},
        "tune": {"system": title, **kept},
    }
    parse_model(Experiment, data)
    text = format_yaml(data)
    if write:
        if path == session.source.path.resolve():
            raise ConfigError(
                f"name: {path.name} is the experiment that is open: choose another name"
            )
        if path.is_symlink():
            raise ConfigError(f"name: {path.name} is a link: choose another name")
        if path.exists() and not overwrite:
            raise NameTakenError(f"{path.name} exists: choose another name, or replace it")
        write_atomic(path, text.encode())
    shown = str(session.source.path.parent / path.name)
    options = [word for folder in session.folders for word in ("--datasets", str(folder))]
    commands = ("eval", "tune")
    return {
        "file": shown,
        "yaml": text,
        "is_written": write,
        "commands": {n: shlex.join(["fusion-bench", n, shown, *options]) for n in commands},
    }
