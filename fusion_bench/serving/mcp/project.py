"""The files of the project that a server's tools may read, and the folder that they may write to.

A tool names a file by its path from the working directory, or a dataset by its name. Nothing it
names may lie elsewhere, links resolved. No result and no error has an absolute path.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fusion_bench.campaign.ask import CANDIDATE, AskedCandidate, Referee
from fusion_bench.campaign.client import ServedCampaign, find_referee
from fusion_bench.config.plugins import refuse_references
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.experiment import (
    Experiment,
    experiment_file,
    find_datasets,
    read_experiment,
)
from fusion_bench.io.dataset_config import find_dataset, find_folders
from fusion_bench.util.files import explain_error, resolve_path
from fusion_bench.util.formatting import escape_control_chars, shorten_error

#: A folder in front of a name, from the root of the file system; of an address, none.
ABSOLUTE: Final = re.compile(r"(?<![\w.:/~-])/(?:[^/\s'\",;]+/)+")
#: Suffixes of an experiment's and a dataset's file.
YAML: Final = (".yaml", ".yml")
#: No overrides.
EMPTY: Final[dict[str, Any]] = {}


#: An experiment as a tool asks for it, where it was read from, folders of its datasets.
OpenedExperiment: TypeAlias = tuple[Experiment, Source, list[Path]]


@dataclass(frozen=True)
class Project:
    """The project that a server serves.

    Attributes:
        experiment: The experiment of tools that name none; None = each must.
        out: The folder that tools may write to; None = they write nothing.
        referee: Answers for the campaign that may be asked; None = there is none.
    """

    experiment: Path | None = None
    out: Path | None = None
    referee: Referee | ServedCampaign | None = None

    @classmethod
    def open(
        cls, root: Path, *, experiment: Path | None, out: Path | None, campaign: str | None
    ) -> Project:
        """Make a folder the working directory, from which tools name files.

        Args:
            root: The project's folder.
            experiment: As the options name it, from the working directory before.
            out: As above.
            campaign: Its folder, as above, or the address of a served one.

        Raises:
            ConfigError: There is no such folder, or the experiment lies outside.
            DataError: There is no such campaign.
        """
        place, file, referee = resolve_path(root), None, None
        if experiment is not None:
            _require_inside(experiment, f"--experiment {experiment}", root)
            file = resolve_path(experiment).relative_to(place)
        if campaign is not None:
            is_address = campaign.startswith(("http://", "https://"))
            referee = find_referee(campaign if is_address else str(resolve_path(Path(campaign))))
        if isinstance(referee, Referee):
            referee.is_served = True
        written = None if out is None else resolve_path(out)
        try:
            os.chdir(place)
        except OSError as error:
            raise ConfigError(f"--root {root}: {explain_error(error)}") from None
        return cls(file, written, referee)

    def locate(self, given: str, argument: str, *suffixes: str) -> Path:
        """The file or folder that an argument names.

        Args:
            given: A path from the project's folder.
            argument: For messages.
            suffixes: Of files that may be named; a folder may be named in any case.

        Raises:
            ConfigError: It lies outside the project, or has another suffix.
        """
        path = _check_relative(given, argument)
        if path.suffix not in suffixes and not path.is_dir():
            listed = " or ".join(suffixes)
            raise ConfigError(f"{argument}: {given!r}: a folder or a file {listed} is needed")
        return path

    def open_experiment(
        self,
        given: str | None,
        *,
        candidate: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] = EMPTY,
    ) -> OpenedExperiment:
        """Read an experiment, changed as an argument says.

        Args:
            given: Its file, or the folder that holds it; None = that of the server.
            candidate: One system more, named ``candidate``.
            overrides: Key below ``systems`` → its value.

        Raises:
            ConfigError: None is named, or one of the arguments or the file breaks a rule.
        """
        path = self.experiment if given is None else self.locate(given, "experiment", *YAML)
        if path is None:
            raise ConfigError("experiment: name one: this server was started without --experiment")
        file = experiment_file(path)
        _require_inside(file, f"experiment: {given!r}")
        if wrong := [key for key in overrides if not key.startswith("systems.")]:
            raise ConfigError(
                f"overrides: {wrong[0]!r}: only systems may be changed, such as "
                "systems.rrf.fusion.k"
            )
        changes = _list_changes(overrides, "overrides")
        experiment, source = read_experiment(file, overrides=changes)
        if candidate is not None and CANDIDATE in experiment.systems:
            raise ConfigError(f"candidate: {file} has a system of that name: change its overrides")
        if candidate is not None:
            added = read_candidate(candidate, EMPTY).resolve(EMPTY, experiment.dataset_names[0])
            systems = {**experiment.systems, CANDIDATE: added}
            experiment = experiment.model_copy(update={"systems": systems})
        folders = [folder for folder in find_folders(None, file) if is_inside(folder)]
        for name, dataset in find_datasets(experiment, source, folders):
            _require_inside(dataset, f"dataset {name!r}")
        return experiment, source, folders

    def find_dataset(self, given: str) -> Path:
        """The ``dataset.yaml`` of a dataset by its name, its folder or its file.

        Raises:
            ConfigError: There is none, or it lies outside the project.
        """
        path = find_dataset(str(_check_relative(given, "dataset")), [Path("datasets")])
        _require_inside(path, f"dataset: {given!r}")
        return path

    def locate_output(self, given: str) -> Path:
        """A folder below ``--out``.

        Raises:
            ConfigError: It lies elsewhere, or the server writes nothing.
        """
        if self.out is None:
            raise ConfigError("folder: this server writes nothing: it was started without --out")
        return _check_relative(given, "folder", self.out)

    def hide_paths(self, text: str) -> str:
        """A result as JSON without the project's own place: its paths become relative."""
        root = json.dumps(str(resolve_path(Path())), ensure_ascii=False)[1:-1]
        return re.sub(rf"{re.escape(root)}(/|(?![\w.-]))", "", text) if len(root) > 1 else text

    def describe_error(self, error: Exception) -> str:
        """An error in one line, which is no longer than a line may be; no folders of the system."""
        line = escape_control_chars(" ".join(str(error).split()))
        return shorten_error(ABSOLUTE.sub("", self.hide_paths(line)))


def _check_relative(given: str, argument: str, base: Path = Path()) -> Path:
    """The path that an argument means, which lies below a folder, links resolved."""
    path = base / given
    is_plain = given.isprintable() and ".." not in path.parts and not Path(given).is_absolute()
    if not given or not is_plain:
        raise ConfigError(f"{argument}: {given!r}: a relative path is needed, without '..'")
    _require_inside(path, f"{argument}: {given!r}", base)
    return path


def is_inside(path: Path, base: Path = Path()) -> bool:
    """Whether a path lies in a folder, by default the project's, links resolved."""
    return resolve_path(path).is_relative_to(resolve_path(base))


def _require_inside(path: Path, what: str, base: Path = Path()) -> None:
    if not is_inside(path, base):
        raise ConfigError(f"{what}: leads out of the folder that this server may use")


def read_candidate(system: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> AskedCandidate:
    """The candidate that a tool's arguments describe.

    Args:
        system: One system; None = the baseline.
        changes: Key of it → its value.

    Raises:
        ConfigError: Neither is given, or one could name code.
    """
    if system is None and not changes:
        raise ConfigError(f"{CANDIDATE}: give one system, or changes of the baseline")
    refuse_references(system, CANDIDATE)
    source = None if system is None else Source(Path(CANDIDATE), dict(system))
    return AskedCandidate(source, tuple(_list_changes(changes, "changes")))


def _list_changes(changes: Mapping[str, Any], argument: str) -> list[str]:
    """``KEY=VALUE`` each, as ``--set`` has them.

    Raises:
        ConfigError: A key or a value could name code.
    """
    refuse_references(changes, argument)
    if wrong := [key for key in changes if "=" in key]:
        raise ConfigError(f"{argument}: {wrong[0]!r}: a key has no '='")
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in changes.items()]
