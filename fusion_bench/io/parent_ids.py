"""The parents of chunks, from the documents of a dataset and from columns of its lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from fusion_bench.data.aligned_runs import ViewCache
from fusion_bench.data.document_rows import is_blank
from fusion_bench.data.grouped_rows import CategoricalIds, encode_ids
from fusion_bench.data.id_rules import apply_rule
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.io.load_records import FileRequest, read_together


def find_parents(
    documents: Path | None,
    files: Sequence[FileRequest],
    known: ViewCache,
    field: str | None,
    column: str | None,
) -> dict[str, str]:
    """Find the parents of ids in the lists, and else in the documents.

    Args:
        documents: JSON Lines of documents; None = there are none.
        files: Of the lists.
        known: Keeps what was found.
        field: A field of the documents; None = read none.
        column: A column of the lists, which not all of them need if a field is given; None = read
            none.

    Raises:
        ConfigError: Nothing has the field or the column.
        DataError: A file breaks a rule, or one chunk has two parents.
    """
    return known.lookup(
        find_parents, (field, column), lambda: _read_parents(documents, files, field, column)
    )


def _read_parents(
    documents: Path | None, files: Sequence[FileRequest], field: str | None, column: str | None
) -> dict[str, str]:
    """Read the parents from the lists, and else from the documents."""
    found: dict[str, str] = {}
    if field is not None and documents is not None:
        _add_parents(found, _read_field(documents, field), str(documents))
    listed: dict[str, str] = {}
    for file in files if column is not None else ():
        for each in (replace(file, later_paths=()), *file.split_repeats()):
            with suppress(*([FusionBenchError] if field is not None else [])):
                _add_parents(listed, _read_column(each, column or ""), str(each.path))
    found |= listed
    if not found:
        places = [f"field {field!r} of documents.jsonl"] if field is not None else []
        places += [f"column {column!r} of a list"] if column is not None else []
        raise ConfigError(
            f"collapse: no chunk has a parent in {' or '.join(places)}: add one, or write "
            "by: {split: '#'} if ids hold the parents"
        )
    return found


def _add_parents(known: dict[str, str], pairs: Iterable[tuple[str, str]], where: str) -> None:
    """Add pairs of chunk and parent, of which each chunk has one."""
    for name, parent in pairs:
        if known.setdefault(name, parent) != parent:
            raise DataError(
                f"{where}: chunk {name!r} has the parents {known[name]!r} and {parent!r}: keep one"
            )


def _read_field(path: Path, field: str) -> Iterable[tuple[str, str]]:
    """Yield the id of each document that has the field, and its value."""
    for where, item in read_objects(path):
        if (value := item.get(field)) not in (None, ""):
            name = require_text(item.get("id", item.get("_id")), "id", where)
            yield name, require_text(value, field, where)


def _read_column(file: FileRequest, column: str) -> Iterable[tuple[str, str]]:
    """Yield the id of each row of a list, and its value in a column."""
    columns = {**file.layout.columns, "document": column}
    asked = replace(file, layout=replace(file.layout, columns=columns))
    ids, parents = (
        encode_ids(cast("CategoricalIds", table.documents))
        for table in read_together([file, asked])
    )
    names = [*ids.vocabulary]
    if file.read_options is not None and file.read_options.ids is not None:
        names = list(apply_rule(file.read_options.ids, names))
    values = [*parents.vocabulary]
    pairs = {*zip(ids.codes.tolist(), parents.codes.tolist(), strict=True)}
    return [
        (names[code], values[parent])
        for code, parent in sorted(pairs)
        if not is_blank(values[parent])
    ]
