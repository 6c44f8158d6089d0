"""Files and their names on the command line: ``bm25=a.jsonl``, ``cohere:logit=c.jsonl``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import typer

from fusion_bench.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter.comparison import RerankFile


def report_file(path: Path) -> Path:
    """The record in the folder of a report, or the file itself."""
    return path / "report.json" if path.is_dir() else path


def parse_named_files(values: Sequence[str], option: str) -> dict[str, Path]:
    """File by name; a file without a name has its own, without the suffix.

    Args:
        values: ``NAME=FILE`` or ``FILE``.
        option: What a message calls them.

    Raises:
        typer.BadParameter: A name or a file is missing.
        ConfigError: A name stands twice.
    """
    from fusion_bench.io.formats import source_name

    files: dict[str, Path] = {}
    for value in values:
        name, given, file = value.partition("=")
        if not given or Path(value).exists():
            name, file = source_name(Path(value)), value
        if not name or not file:
            raise typer.BadParameter(f"{value!r} is not NAME=FILE", param_hint=option)
        if name in files:
            raise ConfigError(
                f"{option}: {name!r} stands twice, for {files[name]} and {file}: name one of them: "
                "NAME=FILE"
            )
        files[name] = Path(file)
    return files


def parse_rerank_files(values: Sequence[str], option: str) -> dict[str, RerankFile]:
    """Rerank list by name: ``NAME=FILE``, or ``NAME:SPACE=FILE`` with what its numbers mean.

    Raises:
        typer.BadParameter: As for :func:`parse_named_files`; so a ConfigError.
        UnknownNameError: No such score space.
    """
    from fusion_bench.data.records import ScoreSpace
    from fusion_bench.evaluation.starter.comparison import RerankFile

    lists: dict[str, RerankFile] = {}
    for label, path in parse_named_files(values, option).items():
        name, has_space, space = label.partition(":")
        if has_space and space not in get_args(ScoreSpace):
            raise UnknownNameError("score space", space, get_args(ScoreSpace), where=option)
        if not name or name in lists:
            raise typer.BadParameter(f"{label!r}: no name, or one used twice", param_hint=option)
        lists[name] = RerankFile(path, space if has_space else None)  # type: ignore[arg-type]
    return lists


def require_qrels(qrels: Path | None) -> Path:
    """The judgments file of ``--qrels``; who has none yet reads how they are made.

    Raises:
        typer.BadParameter: None is given.
    """
    if qrels is None:
        raise typer.BadParameter(
            "a judgments file is needed. No judgments yet? 'fusion-bench dataset new DIR "
            "NAME=FILE NAME=FILE' makes a dataset without any, which 'fusion-bench judge DIR' "
            "reads",
            param_hint="--qrels",
        )
    return qrels
