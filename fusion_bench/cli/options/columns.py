"""Names of columns on the command line: ``query=search term``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fusion_bench.config.fields.column_names import QRELS_ROLES, RUN_ROLES
from fusion_bench.errors import UnknownNameError

if TYPE_CHECKING:
    from fusion_bench.io.file_layout import FileLayout


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


def parse_qrels_columns(values: Sequence[str] | None) -> FileLayout:
    """The layout of judgments whose columns have other names than the usual ones.

    Args:
        values: ``ROLE=NAME``, such as ``query=search term``.

    Raises:
        typer.BadParameter: A role or a name is missing, or a role stands twice.
        UnknownNameError: No such role.
    """
    return _parse_columns(values, QRELS_ROLES, "--qrels-columns")


def parse_run_columns(values: Sequence[str] | None) -> FileLayout:
    """The layout of runs; arguments and errors as for :func:`parse_qrels_columns`."""
    return _parse_columns(values, RUN_ROLES, "--run-columns")


def _parse_columns(values: Sequence[str] | None, roles: Sequence[str], option: str) -> FileLayout:
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
