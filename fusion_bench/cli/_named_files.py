"""Files and their names on the command line: ``bm25=a.jsonl``, ``cohere:logit=c.jsonl``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, get_args

import typer

from fusion_bench.errors import UnknownNameError
from fusion_bench.io.file_bytes import strip_suffixes

if TYPE_CHECKING:
    from fusion_bench.evaluation.starter.comparison import RerankFile
    from fusion_bench.io.file_layout import FileLayout


#: What the columns of a file hold.
QRELS_ROLES: Final = ("query", "document", "grade")
RUN_ROLES: Final = ("query", "document", "score", "rank")

QrelsColumns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help=f"The judgments' column of {', '.join(QRELS_ROLES)}, if it has an unusual name; "
        "repeatable.",
        metavar="ROLE=NAME",
    ),
]
RunColumns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        help=f"The lists' column of {', '.join(RUN_ROLES)}, if it has an unusual name; repeatable.",
        metavar="ROLE=NAME",
    ),
]


def parse_columns(values: Sequence[str] | None, roles: Sequence[str], option: str) -> FileLayout:
    """The layout of files whose columns have other names than the usual ones.

    Args:
        values: ``ROLE=NAME``, such as ``query=search term``.
        roles: What a column may hold.
        option: What a message calls them.

    Raises:
        typer.BadParameter: A role or a name is missing, or a role stands twice.
        UnknownNameError: No such role.
    """
    from fusion_bench.io.file_layout import FileLayout

    columns: dict[str, str] = {}
    for value in values or ():
        role, _, name = value.partition("=")
        if not role or not name:
            raise typer.BadParameter(f"{value!r} is not ROLE=NAME", param_hint=option)
        if role not in roles:
            raise UnknownNameError("role", role, roles, where=option)
        if role in columns:
            raise typer.BadParameter(f"{role!r} stands twice: drop one", param_hint=option)
        columns[role] = name
    return FileLayout(columns=columns)


def parse_named_files(values: Sequence[str], option: str) -> dict[str, Path]:
    """File by name; a file without a name has its own, without the suffix.

    Args:
        values: ``NAME=FILE`` or ``FILE``.
        option: What a message calls them.

    Raises:
        typer.BadParameter: A name or a file is missing, or a name stands twice.
    """
    files: dict[str, Path] = {}
    for value in values:
        name, given, file = value.partition("=")
        if not given or Path(value).exists():
            name, file = strip_suffixes(Path(value)), value
        if not name or not file:
            raise typer.BadParameter(f"{value!r} is not NAME=FILE", param_hint=option)
        if name in files:
            raise typer.BadParameter(f"{name!r} stands twice: rename one", param_hint=option)
        files[name] = Path(file)
    return files


def parse_rerank_files(values: Sequence[str], option: str) -> dict[str, RerankFile]:
    """Rerank list by name: ``NAME=FILE``, or ``NAME:SPACE=FILE`` with what its numbers mean.

    Raises:
        typer.BadParameter: As for :func:`parse_named_files`.
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
