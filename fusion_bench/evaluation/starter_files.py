"""The dataset, experiment, copied lists that a first comparison leaves as files."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import yaml

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.evaluation.starter import StarterComparison, StarterInput, StarterLists
from fusion_bench.io.provenance import meta_path
from fusion_bench.io.raw_files import FileLayout
from fusion_bench.util.file_paths import resolve_path
from fusion_bench.util.files import (
    make_write_error,
    open_atomic,
    open_regular,
    remove_on_failure,
    require_free,
    write_atomic,
)


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
            ConfigError: Another file is in the way.
        """
        root = resolve_path(self.folder)
        if resolve_path(path).is_relative_to(root):
            return resolve_path(path).relative_to(root).as_posix()
        target = self.folder / f"{name}{_format_suffixes(path)}"
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
                    with open_regular(source) as original, open_atomic(target) as copy:
                        shutil.copyfileobj(original, copy)
            except shutil.Error as error:  # of several files of a folder
                raise FusionBenchError(f"{target}: cannot be written: {error}") from error
            except OSError as error:
                raise make_write_error(target, error) from error
        return list(self.targets)


def _format_suffixes(path: Path) -> str:
    """What tells the format: ``.trec.gz``, ``.jsonl``."""
    kept = path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]
    return "".join(kept)


#: What the gate of a saved experiment allows the primary measure to fall by.
MAX_DROP = 0.01
DATASET_FILE, EXPERIMENT_FILE = "dataset.yaml", "experiment.yaml"


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
    require_free(folder, (DATASET_FILE, EXPERIMENT_FILE), option)


def save_starter(
    given: StarterInput, done: StarterComparison, folder: Path, saved_by: SavedBy = TRY
) -> list[Path]:
    """Write a folder that ``eval``, ``tune`` and ``gate`` take as it is.

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
        FusionBenchError: The folder cannot be written to.
    """
    spaces = {name: done.dataset.spaces[name] for name in given.rerankers}
    experiment = _experiment_text(done, saved_by.command)
    return _save_files(given, done.dataset.name, spaces, experiment, folder, saved_by)


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
    baseline, systems = lists.starter.baseline, lists.starter.systems
    data = {
        "description": f"The starter systems of {saved_by.command}.",
        "dataset": DATASET_FILE,
        "measures": list(given.measures),
        "baseline": baseline,
        "systems": systems,
        "tune": {"system": _tuned_system(systems, baseline, baseline)},
    }
    experiment = _add_notes(saved_by.command, lists.notes, data)
    return _save_files(given, name, lists.spaces, experiment, folder, saved_by)


def _save_files(
    given: StarterInput,
    name: str,
    spaces: Mapping[str, ScoreSpace],
    experiment: str,
    folder: Path,
    saved_by: SavedBy,
) -> list[Path]:
    check_free(folder, saved_by.option)
    copies = Copies(folder, saved_by.option)
    dataset = _describe_dataset(given, name, spaces, copies)
    hint = "" if given.qrels else f"# {format_judging_hint(folder)}\n"
    texts = {
        folder / DATASET_FILE: f"# Written by: {saved_by.command}\n{hint}{_to_yaml(dataset)}",
        folder / EXPERIMENT_FILE: experiment,
    }
    with remove_on_failure() as new:
        new += [*texts, *copies.targets]
        copied = copies.write()
        return [*(write_atomic(path, text.encode()) for path, text in texts.items()), *copied]


def format_judging_hint(folder: Path) -> str:
    """How judgments of a dataset without any are made."""
    command = f"fusion-bench judge {quote(str(folder))}"
    return f"No judgments yet. '{command}' makes them; then add 'qrels: FILE'."


def _describe_dataset(
    given: StarterInput, name: str, spaces: Mapping[str, ScoreSpace], copies: Copies
) -> dict[str, Any]:
    """The ``dataset.yaml``; plans the copies of the files that it names."""
    columns = {"columns": dict(given.run_layout.columns)} if given.run_layout.columns else {}
    dataset: dict[str, Any] = {"name": name}
    if given.qrels is not None:
        dataset["qrels"] = _qrels_entry(copies.add(given.qrels, "qrels"), given.qrels_layout)
    for key, path in (("queries", given.queries), ("documents", given.documents)):
        if path is not None:
            dataset[key] = copies.add(path, key)
    if given.binary_relevance != 1:
        dataset["binary_relevance"] = given.binary_relevance
    dataset["runs"] = {
        name: {"path": copies.add(path, f"runs/{name}"), **columns}
        for name, path in given.runs.items()
    }
    if given.rerankers:
        dataset["rerank"] = {
            name: {
                "path": copies.add(file.path, f"rerank/{name}"),
                **columns,
                "score_space": spaces[name],
            }
            for name, file in given.rerankers.items()
        }
    return dataset


def _qrels_entry(path: str, layout: FileLayout) -> object:
    return {"path": path, "columns": dict(layout.columns)} if layout.columns else path


def _experiment_text(done: StarterComparison, command: str) -> str:
    """The experiment, with what it takes to tune and to gate its best system."""
    collection = done.report.collections[0]
    best = collection.best_system
    data = {
        "description": f"The starter systems of {command}.",
        **done.source.data,
        "dataset": DATASET_FILE,
        "tune": {"system": _tuned_system(done.source.data["systems"], best, collection.baseline)},
        "gate": {"system": best, "checks": {collection.primary_measure: {"max_drop": MAX_DROP}}},
    }
    return _add_notes(command, done.notes, data)


def _add_notes(command: str, notes: Iterable[str], data: dict[str, Any]) -> str:
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
    separate = json.loads(json.dumps(data))  # YAML would write shared lists as aliases
    text = yaml.safe_dump(
        separate, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text.strip()[1:-1]
