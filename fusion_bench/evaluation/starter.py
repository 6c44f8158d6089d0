"""A first comparison of some lists, with no configuration: its systems, its report, its files."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import yaml

from fusion_bench.config.options import ObstacleKind
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.records import ScoreSpace, drop_final
from fusion_bench.data.run import Run, assign_roles
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.in_memory import make_dataset, make_experiment, name_dataset
from fusion_bench.evaluation.recommendation import preferred_system
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.run_experiment import run_on_datasets
from fusion_bench.evaluation.starter_systems import (
    StarterSystems,
    build_starter_systems,
    guess_score_space,
)
from fusion_bench.experiment.experiment import EXPERIMENT_FILE
from fusion_bench.experiment.settings import AUTO
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import NO_SETTINGS, QRELS, FileSettings
from fusion_bench.io.held_out import refuse_copy
from fusion_bench.io.json_objects import load_known_queries
from fusion_bench.io.load_records import load_stated_qrels, load_stated_run
from fusion_bench.io.looks import LEDGER_NAME, read_ledger, record_shown
from fusion_bench.io.outputs import DATASET_FILE
from fusion_bench.io.provenance import meta_path, read_meta
from fusion_bench.util import files
from fusion_bench.util.formatting import Progress, ignore_progress

#: Names stand in YAML, in tables and in file names.
NAME = re.compile(r"\w[\w .+-]*")


class RerankFile(NamedTuple):
    """A rerank list's file; without a score space, its values decide.

    Attributes:
        path: The file.
        score_space: What its numbers mean.
    """

    path: Path
    score_space: ScoreSpace | None = None


@dataclass(frozen=True)
class StarterInput:
    """The files that are compared, and how.

    Attributes:
        qrels: File of judgments; None = nothing is judged yet, and nothing can be compared.
        runs: Run files by name.
        rerankers: Rerank lists by name.
        queries: File of the queries' texts, types, groups and splits; None = nothing is known.
        measures: Measure names, the primary one first.
        binary_relevance: Grade from which binary measures count.
        settings: What is stated of the files beside their paths.
        documents: File of the documents' texts, which a saved dataset names; None = not known.
        name: The dataset's name; None = that of the judgments' file.
        engine: Compare only systems that this search engine can express; None = all.
        roles: Roles by the name of a run; see :func:`assign_roles`.
    """

    qrels: Path | None
    runs: Mapping[str, Path]
    rerankers: Mapping[str, RerankFile]
    measures: Sequence[str]
    queries: Path | None = None
    binary_relevance: int = 1
    settings: FileSettings = NO_SETTINGS
    documents: Path | None = None
    name: str | None = None
    engine: str | None = None
    roles: Mapping[str, str | Collection[str]] = field(default_factory=dict)


class StarterLists(NamedTuple):
    """The lists of the files, and the systems that are worth trying on them.

    Attributes:
        runs: Run by name.
        rerankers: Rerank list by name.
        spaces: What the numbers of each rerank list mean.
        starter: The systems.
        notes: What their names stand for, what was guessed, and what was left out.
    """

    runs: dict[str, Run]
    rerankers: dict[str, Run]
    spaces: dict[str, ScoreSpace]
    starter: StarterSystems
    notes: tuple[str, ...]


class StarterComparison(NamedTuple):
    """What was compared, and what was found.

    Attributes:
        report: As of an experiment.
        dataset: The lists.
        source: The experiment, as its YAML would say it.
        starter: The systems.
        notes: What the systems' names stand for, what was guessed, and what was left out.
    """

    report: Report
    dataset: Dataset
    source: Source
    starter: StarterSystems
    notes: tuple[str, ...]


def read_starter_lists(given: StarterInput, progress: Progress = ignore_progress) -> StarterLists:
    """Read the lists, and build the starter systems.

    Args:
        given: The files; judgments are not read.
        progress: Called before the work.

    Raises:
        ConfigError: A name cannot be used, or there are too few lists.
        DataError: A file breaks a rule.
    """
    names = [*given.runs, *given.rerankers]
    for name in names:
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot name a list: begin with a letter or digit, and use letters, "
                "digits, blanks and . + - _ only"
            )
        if names.count(name) > 1:
            raise ConfigError(f"{name!r} names both a list and a reranker: rename one of them")
    progress("reading the lists", 0, 1)
    settings = given.settings
    runs = {name: load_stated_run(path, name, settings) for name, path in given.runs.items()}
    runs = assign_roles(runs, given.roles)
    rerankers = {
        name: load_stated_run(file.path, name, settings, file.score_space)
        for name, file in given.rerankers.items()
    }
    spaces: dict[str, ScoreSpace] = {}
    guesses = []
    for name, run in rerankers.items():
        space = given.rerankers[name].score_space
        if space is None:
            space, reason = guess_score_space(run)
            guesses.append(
                f"{name}: score_space {space}, guessed because {reason}; --rerank "
                f"{name}:SPACE=FILE sets it."
            )
        spaces[name] = space
    starter = build_starter_systems([*runs.values()], [*rerankers.values()], given.engine)
    return StarterLists(runs, rerankers, spaces, starter, (*starter.notes, *guesses))


def compare_starter_systems(
    given: StarterInput,
    progress: Progress = ignore_progress,
    *,
    is_shown: bool = True,
    allowed: Collection[ObstacleKind] = (),
) -> StarterComparison:
    """Compare the starter systems on lists that no dataset describes.

    Args:
        given: The files.
        progress: Called as the work goes on.
        is_shown: Whether values are shown; else no ledger gets the queries, and ties inside lists
            are not settled at random.
        allowed: Obstacles that do not stop the comparison.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        ConfigError: A name cannot be used, or there is nothing to compare, or nothing is judged.
        DataError: A file breaks a rule.
    """
    if given.qrels is None:
        raise ConfigError("systems are compared on judgments: name a file of judgments")
    lists = read_starter_lists(given, progress)
    qrels = load_stated_qrels(given.qrels, given.settings)
    dataset = make_dataset(
        given.name or name_dataset(given.qrels),
        qrels,
        lists.runs,
        rerankers=lists.rerankers,
        score_spaces=lists.spaces,
        queries=None if given.queries is None else load_known_queries(given.queries, qrels),
        qrels_path=given.qrels,
        paths={**given.runs, **{name: file.path for name, file in given.rerankers.items()}},
        settings=given.settings,
        binary_relevance=given.binary_relevance,
    )
    known = {name: read_meta(file.path) for name, file in given.rerankers.items()}
    dataset = replace(
        dataset,
        provenance={name: meta for name, meta in known.items() if meta is not None},
        folder=dataset.folder if is_shown else None,
    )
    done = compare_starter(
        *(dataset, lists.starter, given.measures, progress), samples_ties=is_shown, allowed=allowed
    )
    return done._replace(notes=lists.notes)


def read_starter_dataset(
    path: Path,
    engine: str | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
    *,
    is_saved: bool = False,
) -> tuple[Dataset, StarterSystems]:
    """Read a dataset, and build the starter systems over its lists but an engine's last word.

    Args:
        path: Its ``dataset.yaml``.
        engine: Only systems that this search engine can express; None = all.
        roles: Roles by the name of a run, in place of those of the file.
        is_saved: Whether an experiment will name the file, so that its roles must be the file's.

    Raises:
        ConfigError: There is nothing to compare, two things have one name, or the experiment could
            not run.
        DataError: A file breaks a rule.
    """
    stored = load_dataset(path, every_query=None)
    dataset = stored.with_roles(roles)
    for name, given in dataset.spec.run_roles.items() if is_saved else ():
        if given != stored.spec.run_roles[name]:
            raise ConfigError(
                f"{TRY.option}: {files.show_path(path)} gives {name} other roles, and the "
                f"experiment reads that file: write 'roles: [{', '.join(sorted(given))}]' beside "
                f"{name} there"
            )
    names = drop_final([*dataset.runs], [run.roles for run in dataset.runs.values()])
    runs = [dataset.runs[name] for name in names]
    starter = build_starter_systems(runs, [*dataset.rerankers.values()], engine)
    return dataset, starter


def compare_starter(
    dataset: Dataset,
    starter: StarterSystems,
    measures: Sequence[str],
    progress: Progress,
    *,
    samples_ties: bool = True,
    allowed: Collection[ObstacleKind],
) -> StarterComparison:
    """Compare the starter systems on a dataset.

    Args:
        dataset: The dataset.
        starter: The systems.
        measures: Measure names, the primary one first.
        progress: Called as the work goes on.
        samples_ties: Whether ties inside lists are settled at random.
        allowed: Obstacles that do not stop the comparison.

    Raises:
        DataCheckError: Document ids do not meet, or a check finds a list false.
        ConfigError: A measure is unknown.
    """
    experiment, source = make_experiment(
        "try",
        starter.systems,
        dataset=dataset.name,
        baseline=starter.baseline,
        measures=list(measures),
    )
    report = run_on_datasets(
        *(experiment, source, [dataset], progress), samples_ties=samples_ties, allowed=allowed
    )
    return StarterComparison(report, dataset, source, starter, starter.notes)


def save_dataset_experiment(
    path: Path,
    starter: StarterSystems,
    measures: Sequence[str],
    done: StarterComparison | None,
    folder: Path,
) -> list[Path]:
    """Write an experiment of the starter systems that names the dataset where it is.

    Args:
        path: The ``dataset.yaml``.
        starter: The systems.
        measures: Measure names, the primary one first.
        done: The comparison; None = nothing was compared.
        folder: Where to; created if missing.

    Returns:
        The experiment.

    Raises:
        ConfigError: Something would be overwritten.
        FusionBenchError: The folder cannot be written to.
    """
    check_free(folder)
    place = Path(os.path.relpath(files.resolve_path(path), files.resolve_path(folder))).as_posix()
    report = None if done is None else done.report
    text = _experiment_text(starter, starter.notes, measures, TRY.command, place, report)
    return [files.write_atomic(folder / EXPERIMENT_FILE, text.encode())]


class Copies:
    """Files to copy into a folder, unless they are there."""

    def __init__(self, folder: Path, option: str) -> None:
        self.folder, self._option = folder, option
        self.targets: dict[Path, Path] = {}

    def add(self, path: Path, name: str) -> str:
        """Plan the copy of a file, and of the record beside a rerank list.

        Returns:
            Its path below the folder.

        Raises:
            ConfigError: Another file is in the way, or a campaign holds out queries of this one.
        """
        root = files.resolve_path(self.folder)
        if files.resolve_path(path).is_relative_to(root):
            return files.resolve_path(path).relative_to(root).as_posix()
        refuse_copy(path)
        # What tells the format: ``.trec.gz``, ``.jsonl``.
        suffixes = path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
        target = self.folder / f"{name}{''.join(suffixes)}"
        for source, place in ((path, target), (meta_path(path), meta_path(target))):
            if source.exists():
                if place.exists():
                    raise ConfigError(
                        f"{self._option} {self.folder}: {place} exists: name another folder"
                    )
                if str(place).lower() in {str(taken).lower() for taken in self.targets}:
                    raise ConfigError(
                        f"{self._option} {self.folder}: {place} is another list's file where "
                        "case does not count: rename one list"
                    )
                self.targets[place] = source
        return target.relative_to(self.folder).as_posix()

    def write(self) -> list[Path]:
        """Copy what was planned."""
        for target, source in self.targets.items():
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, target)
                else:
                    with files.open_regular(source) as original, files.open_atomic(target) as copy:
                        shutil.copyfileobj(original, copy)
            except shutil.Error as error:  # of several files of a folder
                raise FusionBenchError(f"{target}: cannot be written: {error}") from error
            except OSError as error:
                raise files.make_write_error(target, error) from error
        return list(self.targets)


@dataclass(frozen=True)
class SavedBy:
    """The command that saves a comparison.

    Attributes:
        command: Its name, for the first line of each file.
        option: What names the folder, for messages.
    """

    command: str
    option: str


TRY = SavedBy("fusion-bench try", "--save")


def check_free(folder: Path, option: str = TRY.option) -> None:
    """Refuse a folder in which something would be overwritten, before the work begins.

    Args:
        folder: Where to.
        option: What names it, for messages.

    Raises:
        ConfigError: It is a file, or holds a dataset or an experiment.
    """
    files.require_free(folder, (DATASET_FILE, EXPERIMENT_FILE), option)


def save_starter(
    given: StarterInput, done: StarterComparison, folder: Path, saved_by: SavedBy = TRY
) -> list[Path]:
    """Write a folder that ``eval``, ``tune`` and ``gate`` accept as it is.

    A ``dataset.yaml`` names only files in its own folder: files from elsewhere are copied into it.

    Args:
        given: The files that were compared.
        done: The comparison.
        folder: Where to; created if missing.
        saved_by: The command.

    Returns:
        The two YAML files, then the copies.

    Raises:
        ConfigError: Something would be overwritten.
        DataError: The folder has a malformed ledger.
        FusionBenchError: The folder cannot be written to.
    """
    if saved_by is TRY:  # others show no values
        read_ledger(folder / LEDGER_NAME)  # a malformed one is refused before anything is written
    name, runs, spaces = done.dataset.name, done.dataset.runs, done.dataset.spaces
    starter, command = done.starter, saved_by.command
    experiment = _experiment_text(starter, done.notes, given.measures, command, report=done.report)
    written = _save_files(given, name, runs, spaces, experiment, folder, saved_by)
    if saved_by is TRY:
        record_shown(folder, done.dataset.qrels, done.report.collections[0].queries)
    return written


def save_uncompared(
    given: StarterInput, lists: StarterLists, name: str, folder: Path, saved_by: SavedBy
) -> list[Path]:
    """Write a folder of lists whose systems were not compared.

    ``judge`` takes it as it is, and ``eval`` where there are judgments.

    Args:
        given: The files.
        lists: What was read of them.
        name: The dataset's name.
        folder: Where to; created if missing.
        saved_by: The command.

    Returns:
        The two YAML files, then the copies.

    Raises:
        ConfigError: Something would be overwritten.
        FusionBenchError: The folder cannot be written to.
    """
    experiment = _experiment_text(lists.starter, lists.notes, given.measures, saved_by.command)
    return _save_files(given, name, lists.runs, lists.spaces, experiment, folder, saved_by)


def _save_files(
    given: StarterInput,
    name: str,
    runs: Mapping[str, Run],
    spaces: Mapping[str, ScoreSpace],
    experiment: str,
    folder: Path,
    saved_by: SavedBy,
) -> list[Path]:
    check_free(folder, saved_by.option)
    copies = Copies(folder, saved_by.option)
    dataset = _describe_dataset(given, name, runs, spaces, copies)
    judging = f"'fusion-bench judge {quote(str(folder))}' makes them; then add 'qrels: FILE'."
    hint = "" if given.qrels else f"# No judgments yet. {judging}\n"
    texts = {
        folder / DATASET_FILE: f"# Written by: {saved_by.command}\n{hint}{_to_yaml(dataset)}",
        folder / EXPERIMENT_FILE: experiment,
    }
    with files.remove_on_failure() as new:
        new += [*texts, *copies.targets]
        copied = copies.write()
        return [*(files.write_atomic(path, text.encode()) for path, text in texts.items()), *copied]


def _describe_dataset(
    given: StarterInput,
    name: str,
    runs: Mapping[str, Run],
    spaces: Mapping[str, ScoreSpace],
    copies: Copies,
) -> dict[str, Any]:
    """The ``dataset.yaml``; plans the copies of the files that it names."""
    dataset: dict[str, Any] = {"name": name}
    if given.qrels is not None:
        path, keys = copies.add(given.qrels, QRELS), given.settings.keys_of(QRELS)
        dataset[QRELS] = {"path": path, **keys} if keys else path
    for key, file in (("queries", given.queries), ("documents", given.documents)):
        if file is not None:
            dataset[key] = copies.add(file, key)
    if given.binary_relevance != 1:
        dataset["binary_relevance"] = given.binary_relevance
    dataset["runs"] = {
        name: {
            "path": copies.add(path, f"runs/{name}"),
            **({"roles": sorted(runs[name].roles)} if runs[name].roles else {}),
            **given.settings.keys_of(name),
        }
        for name, path in given.runs.items()
    }
    if given.rerankers:
        dataset["rerank"] = {
            name: {
                "path": copies.add(reranker.path, f"rerank/{name}"),
                **given.settings.keys_of(name),
                "score_space": spaces[name],
            }
            for name, reranker in given.rerankers.items()
        }
    return dataset


def _experiment_text(
    starter: StarterSystems,
    notes: Iterable[str],
    measures: Sequence[str],
    command: str,
    dataset: str = DATASET_FILE,
    report: Report | None = None,
) -> str:
    """The experiment; if its systems were compared, with a gate for the best one."""
    best, gate = starter.baseline, {}
    if report is not None:
        best = preferred_system(report.collections[0])
        checks = {report.collections[0].primary_measure: {"max_drop": AUTO}}
        gate = {"gate": {"system": best, "checks": checks}}
    data = {
        "description": f"The starter systems of {command}.",
        "dataset": dataset,
        "measures": list(measures),
        "baseline": starter.baseline,
        "systems": starter.systems,
        "tune": {"system": _tuned_system(starter.systems, best, starter.baseline)},
        **gate,
    }
    lines = "".join(f"# {note}\n" for note in notes)
    return f"# Written by: {command}\n{lines}{_to_yaml(data)}"


def _tuned_system(systems: dict[str, Any], best: str, baseline: str) -> str:
    """The best system, or the next one that has parameters: a list as it is has none."""
    return next(
        name
        for name in (best, baseline, *systems)
        if "fusion" in systems[name] or "blend" in systems[name]
    )


def _to_yaml(data: dict[str, Any]) -> str:
    """The mapping as YAML, with one line for each system or list."""
    lines = []
    for key, value in data.items():
        if isinstance(value, dict) and all(isinstance(item, dict) for item in value.values()):
            lines += [f"{key}:", *(f"  {_to_line({name: item})}" for name, item in value.items())]
        else:
            lines.append(_to_line({key: value}))
    return "\n".join(lines) + "\n"


def _to_line(data: dict[str, Any]) -> str:
    """A mapping of one key, without the braces around it."""
    text = yaml.dump(
        data,
        Dumper=_PlainDumper,
        default_flow_style=True,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
    )
    return text.strip()[1:-1]


class _PlainDumper(yaml.SafeDumper):
    """Writes a list that stands twice twice, and not as an alias."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - part of the contract
        return True
