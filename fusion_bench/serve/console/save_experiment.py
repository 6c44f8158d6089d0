"""A setting as an experiment that ``eval`` and ``tune`` read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Final

from fusion_bench.config.models import parse_model
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.system import System
from fusion_bench.serve.console.session import ConsoleSession
from fusion_bench.serve.console.setting import Setting
from fusion_bench.tune.export_experiment import KEPT
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.yaml_text import format_yaml

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
    text = format_experiment(session, system, name)
    if write:
        _write(session, path, text, overwrite=overwrite)
    shown = session.source.path.parent / path.name
    return {
        "file": str(shown),
        "yaml": text,
        "is_written": write,
        "commands": {name: _format_command(name, shown, session) for name in ("eval", "tune")},
    }


def _format_command(name: str, file: Path, session: ConsoleSession) -> str:
    """A command on the file, with the folders of datasets that the console was given."""
    options = [word for folder in session.folders for word in ("--datasets", str(folder))]
    return shlex.join(["fusion-bench", name, str(file), *options])


def format_experiment(session: ConsoleSession, system: System, name: str) -> str:
    """The baseline and a system side by side, as YAML that :class:`Experiment` accepts."""
    experiment, baseline = session.experiment, session.baseline
    title = name if name != baseline.name else f"{name} console"
    tune = {} if experiment.tune is None else experiment.tune.model_dump(exclude_unset=True)
    kept = {key: value for key, value in tune.items() if key not in NOT_KEPT}
    data: dict[str, Any] = {
        "description": f"{system.name} as set in the console on {session.dataset.name}.",
        "dataset": session.dataset_name,
        "baseline": baseline.name,
        **experiment.model_dump(mode="json", include=set(KEPT)),
        **_queries(experiment),
        "systems": {baseline.name: baseline.resolved_config, title: system.resolved_config},
        "tune": {"system": title, **kept},
    }
    parse_model(Experiment, data)
    return format_yaml(data)


def _queries(experiment: Experiment) -> dict[str, Any]:
    """Which queries the open experiment evaluates."""
    given = experiment.model_dump(mode="json", include={"split", "query_type", "where"})
    return {key: value for key, value in given.items() if value}


def _write(session: ConsoleSession, path: Path, text: str, *, overwrite: bool) -> None:
    if path == session.source.path.resolve():
        raise ConfigError(f"name: {path.name} is the experiment that is open: choose another name")
    if path.is_symlink():
        raise ConfigError(f"name: {path.name} is a link: choose another name")
    if path.exists() and not overwrite:
        raise NameTakenError(f"{path.name} exists: choose another name, or replace it")
    write_atomic(path, text.encode())
