"""What every file format is, the registry of them, the column names that they share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from fusion_bench.config.registry import Registry
from fusion_bench.config.yaml_files import format_flow_yaml
from fusion_bench.data.document_rows import COLUMN_NAMES, ID_ROLES, VALUE_ROLES
from fusion_bench.errors import ConfigError, DataError, did_you_mean
from fusion_bench.io.raw_files import NO_COLUMNS, ColumnNames, Kind, RawTable


class TableReader(Protocol):
    """Reads one file; its errors name file and line."""

    def __call__(
        self, path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames
    ) -> RawTable:
        """The rows of a file.

        Args:
            path: The file.
            kind: What it holds.
            has_ranks: Whether to read its rank column, if it has one.
            columns: What a column holds → its name in this file; empty = the usual names.
        """


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        suffixes: What files of the format end with, small letters, ``.gz`` apart: ``(".trec",)``.
        read_table: Reads a file.
    """

    suffixes: tuple[str, ...]
    read_table: TableReader


class _FormatRegistry(Registry[Format]):
    def _check_plugin(self, plugin: Any, name: str) -> None:  # noqa: ANN401 - anybody's object
        if not isinstance(plugin, Format):
            raise ConfigError(f"{name!r} is no {self.kind}: make it a Format")


FORMATS = _FormatRegistry("file format", "fusion_bench.io.formats", "fusion_bench.formats")


def register_format(name: str, *suffixes: str) -> Callable[[TableReader], TableReader]:
    """Decorator: register the reader of the files that end with these suffixes."""

    def register(read_table: TableReader) -> TableReader:
        FORMATS.add_plugin(name, Format(suffixes, read_table))
        return read_table

    return register


#: Words in a name that suggest what a column of another name holds.
SUGGESTIVE_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query", "search", "question", "topic", "keyword", "term", "qid"),
    "document": ("doc", "url", "product", "item", "page", "passage", "article", "sku", "pid"),
    "score": ("score", "sim", "relevance", "confidence", "point"),
    "grade": ("grade", "rating", "rel", "judg", "label", "score", "star", "point"),
}
#: Columns that lists have and judgments have not.
RANKED_NAMES: Final = frozenset({"_score", "rank", "similarity", "distance"})


def find_columns(
    names: Sequence[str],
    kind: Kind,
    where: str,
    columns: ColumnNames = NO_COLUMNS,
    *,
    known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES,
    required: Collection[str] = ID_ROLES,
    is_ordered: bool = False,
) -> dict[str, str]:
    """The file's own name of each column that a kind needs, and of ``rank`` if it is there.

    Args:
        names: All names in the file.
        kind: What the file holds.
        where: Prefix of the message that says where they stand.
        columns: What a column holds → its name, where it has none of the usual names.
        known_names: The usual names.
        required: What must be there besides a score or a grade.
        is_ordered: The rows stand in the order of their ranks.

    Returns:
        ``query``, ``document``, ``value`` and perhaps ``rank`` → the name in the file. A run
        without a ``value`` has its order from ``rank``: it has no other column, or ``columns``
        names the rank and no score.

    Raises:
        DataError: A needed column is not there, or two have one name.
    """
    if len(set(names)) < len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{where}: two columns are named {repeated!r}: keep one")
    value = VALUE_ROLES[kind]
    given = match_columns(names, (*required, value, "rank"), where, columns, known_names)
    missing = [role for role in (*required, value) if role not in given]
    has_only_ranks = "rank" in columns or set(names) <= set(given.values())
    has_order = has_only_ranks and (is_ordered or "rank" in given)
    if missing and not (kind == "run" and missing == [value] and has_order):
        raise DataError(_describe_missing(missing, given, names, where, columns, known_names))
    return {"value" if role == value else role: name for role, name in given.items()}


def match_columns(
    names: Sequence[str],
    roles: Sequence[str],
    where: str,
    columns: ColumnNames = NO_COLUMNS,
    known_names: Mapping[str, tuple[str, ...]] = COLUMN_NAMES,
) -> dict[str, str]:
    """The name of each role's column that is there; arguments as for :func:`find_columns`.

    Raises:
        DataError: ``columns`` names one that is not there.
    """
    by_lower = {name.strip().lower(): name for name in names}
    mapped = {role: columns[role] for role in roles if role in columns}
    for role, name in mapped.items():
        if name not in names and name.strip().lower() not in by_lower:
            remedy = "" if "grade" in roles else f"; of one list: --run-columns LIST:{role}=NAME"
            raise DataError(
                f"{where}: columns.{role}: no column {name!r}{did_you_mean(name, names)} "
                f"(found: {', '.join(names)}{remedy})"
            )
    given = {
        role: name if name in names else by_lower[name.strip().lower()]
        for role, name in mapped.items()
    }
    for role in roles:
        known = (by_lower[name] for name in known_names[role] if name in by_lower)
        match = next((name for name in known if name not in mapped.values()), None)
        if role not in given and match is not None:
            given[role] = match
    return {role: given[role] for role in roles if role in given}


def _describe_missing(
    missing: Sequence[str],
    given: ColumnNames,
    names: Sequence[str],
    where: str,
    columns: ColumnNames,
    known_names: Mapping[str, tuple[str, ...]],
) -> str:
    """What is not there, what is, and the ``columns`` that would read the file."""
    if len(missing) == 1:
        allowed = ", ".join(known_names[missing[0]])
    else:
        allowed = "; ".join(f"{role}: {', '.join(known_names[role])}" for role in missing)
    present = ", ".join(names) or "nothing"
    if "grade" in missing and RANKED_NAMES.intersection(name.lower() for name in names):
        return f"{where}: a ranked list, and judgments are needed (found: {present})"
    if set(names) <= set(given.values()):
        remedy = "add it"
    else:
        guess = {**columns, **guess_columns(missing, given, names)}
        option = "--qrels-columns" if "grade" in (*missing, *given) else "--run-columns"
        words = [f"{option} {shlex.quote(f'{role}={name}')}" for role, name in guess.items()]
        words += ["(NAME:KEY=COLUMN for one list)"] if option == "--run-columns" else []
        remedy = (
            "rename it, or write in dataset.yaml, beside the file's path, "
            f"columns: {format_columns(guess)} (without a dataset.yaml: {' '.join(words)})"
        )
    return (
        f"{where}: no column for the {' or the '.join(missing)} (found: {present}; allowed names: "
        f"{allowed}): {remedy}"
    )


def guess_columns(
    missing: Sequence[str], given: ColumnNames, names: Sequence[str]
) -> dict[str, str]:
    """The columns that may hold what is missing; ``COLUMN`` where that cannot be guessed.

    Args:
        missing: What no column of a known name holds.
        given: What the others hold → their names.
        names: All names in the file.
    """
    free = [name for name in names if name not in given.values()]
    guessed: dict[str, str] = {}
    for role in missing:
        words = SUGGESTIVE_WORDS[role]
        near = (name for word in words for name in free if word in name.lower())
        name = next(near, None)
        if name is not None:
            guessed[role] = name
            free.remove(name)
    unknown = [role for role in missing if role not in guessed]
    if len(unknown) == len(free) == 1:
        guessed[unknown[0]] = free[0]
    return {role: guessed.get(role, "COLUMN") for role in missing}


def format_columns(columns: ColumnNames) -> str:
    """A ``columns`` map as YAML of one line."""
    return format_flow_yaml(dict(columns))
