"""Options that name files or their columns: ``bm25=a.jsonl``, ``query=search term``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args

import typer

from fusion_bench.config.options import Count, File, Names, Option, Options
from fusion_bench.data.document_rows import QRELS_ROLES, RUN_ROLES
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter import RerankFile
    from fusion_bench.io.raw_files import FileLayout


QrelsColumns: TypeAlias = Annotated[
    Sequence[str],
    Option(
        metavar="ROLE=NAME",
        help=f"The judgments' column of {', '.join(QRELS_ROLES)}, if it has an unusual name; "
        "repeatable.",
    ),
]
RunColumns: TypeAlias = Annotated[
    Sequence[str],
    Option(
        metavar="[LIST:]ROLE=NAME",
        help=f"The lists' column of {', '.join(RUN_ROLES)}, if it has an unusual name, or that of "
        "one list; repeatable.",
    ),
]


class ColumnOptions(Options):
    """How files that no YAML describes are read and measured."""

    measure: Annotated[
        Names,
        Option(help=f"Measure, the primary one first. Default: {', '.join(DEFAULT_MEASURES)}."),
    ] = ()
    qrels_columns: QrelsColumns = ()
    run_columns: RunColumns = ()


class ListOptions(Options):
    """What stands beside a user's own ranked lists.

    Attributes:
        qrels: Judgments file.
        queries: What is known of the queries, as JSON Lines: id, text, type, group, split.
        rerank: A reranker's scores; repeatable. Without SPACE (unit, logit, log_prob, unbounded,
            order) the values decide what they mean.
        binary_relevance: Grade from which binary measures count.
    """

    qrels: File | None = None
    queries: File | None = None
    rerank: Annotated[Sequence[str], Option(metavar="NAME[:SPACE]=FILE")] = ()
    binary_relevance: Count = 1


def parse_qrels_columns(values: Sequence[str]) -> FileLayout:
    """The layout of judgments whose columns have other names than the usual ones.

    Args:
        values: ``ROLE=NAME``, such as ``query=search term``.

    Raises:
        typer.BadParameter: A role or a name is missing, or a role stands twice.
        UnknownNameError: No such role.
    """
    from fusion_bench.io.raw_files import FileLayout

    return FileLayout(columns=_parse_columns(values, QRELS_ROLES, "--qrels-columns"))


def parse_run_columns(values: Sequence[str], lists: Collection[str]) -> FileLayout:
    """The layout of runs.

    Args:
        values: ``ROLE=NAME``, or ``LIST:ROLE=NAME`` for the file of one list alone.
        lists: The names of the lists.

    Raises:
        typer.BadParameter: As for :func:`parse_qrels_columns`; so an UnknownNameError.
        UnknownNameError: No such list.
    """
    from fusion_bench.io.raw_files import FileLayout

    option, by_list = "--run-columns", dict[str, list[str]]()
    for value in values:
        role, equals, column = value.partition("=")
        name, _, role = role.rpartition(":")
        if name and name not in lists:
            raise UnknownNameError("list", name, lists, where=option)
        by_list.setdefault(name, []).append(f"{role}{equals}{column}")
    columns = {name: _parse_columns(each, RUN_ROLES, option) for name, each in by_list.items()}
    return FileLayout(columns=columns.pop("", {}), by_list=columns)


def _parse_columns(values: Sequence[str], roles: Sequence[str], option: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    for value in values:
        role, _, name = value.partition("=")
        if not role or not name:
            raise typer.BadParameter(f"{value!r} is not ROLE=NAME", param_hint=option)
        if role not in roles:
            raise UnknownNameError("role", role, roles, where=option)
        if role in columns:
            raise typer.BadParameter(f"{role!r} stands twice: drop one", param_hint=option)
        columns[role] = name
    return columns


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
    from fusion_bench.evaluation.starter import RerankFile

    lists: dict[str, RerankFile] = {}
    for label, path in parse_named_files(values, option).items():
        name, has_space, space = label.partition(":")
        if has_space and space not in get_args(ScoreSpace):
            raise UnknownNameError("score space", space, get_args(ScoreSpace), where=option)
        if not name or name in lists:
            raise typer.BadParameter(f"{label!r}: no name, or one used twice", param_hint=option)
        lists[name] = RerankFile(path, space if has_space else None)  # type: ignore[arg-type]
    return lists
