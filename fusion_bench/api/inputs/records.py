"""Judgments, runs, queries and measures in whatever form they are at hand.

A path is read as the commands read it; everything else is recognized by
:mod:`fusion_bench.data.rows.frames`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError, did_you_mean
from fusion_bench.io.json_objects import load_queries, parse_query
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.measures import Measure


def read_qrels(given: object) -> Qrels:
    """Judgments: a path, ``Qrels``, or what :meth:`Qrels.from_dict` takes.

    Raises:
        DataError: A file or a row breaks a rule.
    """
    if isinstance(given, Qrels):
        return given
    if is_path(given):
        return load_qrels(Path(given))
    try:
        return Qrels.from_dict(given)
    except DataError as error:
        raise DataError(f"qrels: {error}") from None


def read_run(given: object, name: str | None = None) -> Run:
    """A run: a path, a ``Run``, or what :meth:`Run.from_dict` takes.

    Args:
        given: The run.
        name: Its name; by default its own, or that of its file.

    Raises:
        ConfigError: The name is empty.
        DataError: A file or a row breaks a rule.
    """
    if name == "":
        raise ConfigError("a run needs a name, and '' is none: give {name: run}")
    if isinstance(given, Run):
        return given if name is None else replace(given, name=name)
    if is_path(given):
        return load_run(Path(given), name=name)
    try:
        return Run.from_dict(given) if name is None else Run.from_dict(name, given)
    except DataError as error:
        raise DataError(f"run {name!r}: {error}" if name else str(error)) from None


def read_runs(given: object) -> dict[str, Run]:
    """Runs by name.

    Args:
        given: ``{name: run}``, a list of runs, or one run; each as for :func:`read_run`. A run
            without a name of its own is called ``run1``, ``run2``, …

    Raises:
        ConfigError: Two have one name.
        DataError: A file or a row breaks a rule.
    """
    if isinstance(given, Mapping) and _names_runs(given):
        return {str(name): read_run(run, str(name)) for name, run in given.items()}
    runs: dict[str, Run] = {}
    for number, run in enumerate(_list_runs(given), start=1):
        known = isinstance(run, Run) or is_path(run) or isinstance(getattr(run, "name", None), str)
        table = read_run(run, None if known else f"run{number}")
        if table.name in runs:
            raise ConfigError(f"two runs are named {table.name!r}: give them as {{name: run}}")
        runs[table.name] = table
    return runs


def is_path(given: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether it names a file."""
    return isinstance(given, str | os.PathLike)


def is_list(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list of things, and no text."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _list_runs(given: object) -> Sequence[object]:
    """The runs of a list, or the only one."""
    return given if is_list(given) and given and not _is_row(given[0]) else [given]


def _is_row(item: object) -> bool:
    """Whether it is one row of a run, and no run."""
    if isinstance(item, Mapping):
        return not any(isinstance(value, Mapping) or is_list(value) for value in item.values())
    return hasattr(item, "_fields") or (isinstance(item, tuple) and len(item) == 3)


def _names_runs(given: Mapping[Any, Any]) -> bool:
    """Whether a mapping's keys name runs, and not queries."""
    filled = (value for value in given.values() if not isinstance(value, Mapping) or value)
    first = next(filled, None)
    if isinstance(first, Mapping):
        inner = next(iter(first.values()), None)
        return isinstance(inner, Mapping | Set) or is_list(inner)
    if is_list(first):
        return bool(first) and (hasattr(first[0], "_fields") or len(_row_fields(first[0])) > 2)
    attributes = ("columns", "to_dict", "scoreddocs_iter", "__next__")
    return is_path(first) or isinstance(first, Run) or any(hasattr(first, a) for a in attributes)


def _row_fields(item: object) -> Sequence[Any]:
    """The fields of a row that is a mapping or a tuple."""
    return list(item) if isinstance(item, Mapping) else item if isinstance(item, tuple) else ()


def read_queries(given: object) -> dict[str, Query]:
    """What is known of queries: a path (JSON Lines), or ``{id: text, Query or its fields}``.

    Fields of the user's own are kept, unless they look like a misspelled one.

    Raises:
        DataError: A file breaks a rule, or it is of another kind.
    """
    if given is None:
        return {}
    if is_path(given):
        return load_queries(Path(given))
    if not isinstance(given, Mapping):
        raise DataError(f"queries: give a path or {{id: text}}, not {type(given).__name__}")
    return {str(key): _make_query(str(key), value) for key, value in given.items()}


def _make_query(key: str, value: object) -> Query:
    if isinstance(value, Query):
        return value
    if isinstance(value, str):
        return Query(key, value)
    known = ("text", *COMPARED_FIELDS)
    if not isinstance(value, Mapping):
        raise DataError(f"query {key!r}: give its text or a mapping of {', '.join(known)}")
    for name in value:
        if name not in known and (hint := did_you_mean(str(name), known)):
            raise DataError(f"query {key!r}: unknown field {name!r}{hint}: rename it")
    return parse_query({**value, "id": key}, f"query {key!r}")


def list_measures(given: object) -> list[str]:
    """Names of measures: a text, a measure of this package or of ir_measures, or several."""
    items: Iterable[object] = given if isinstance(given, list | tuple | set) else [given]
    return [item.name if isinstance(item, Measure) else str(item) for item in items]
