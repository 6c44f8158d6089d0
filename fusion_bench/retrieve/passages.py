"""Hypothetical passages (HyDE): replayed from a file, or written by a language model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import read_objects, require_text
from fusion_bench.io.outputs import write_output
from fusion_bench.retrieve.answers.chat import PassageWriter
from fusion_bench.retrieve.answers.collect import Usage, collect_answers
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_lines import encode_json_lines


def read_passages(path: Path, field: str, queries: Mapping[str, str]) -> dict[str, str]:
    """The stored passage of each query.

    Args:
        path: JSON Lines with ``id`` (or ``_id``) and the field.
        field: The key of the passage.
        queries: Query id → text; only the ids are read.

    Raises:
        DataError: A line without an id, an id given twice, or a query without a passage.
    """
    passages: dict[str, str] = {}
    keys: set[str] = set()
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        given = item.get("id", item.get("_id"))
        if given in (None, ""):
            raise DataError(f"{where}: an 'id' is needed (found: {', '.join(item) or 'nothing'})")
        name = require_text(given, "id", where)
        if name in passages:
            raise DataError(f"{where}: query {name!r} stands twice: keep one")
        keys |= item.keys()
        value = item.get(field)
        passages[name] = "" if value is None else require_text(value, field, where)
    missing = [query for query in queries if not passages.get(query, "").strip()]
    if missing:
        raise DataError(
            f"{path}: {pluralize(len(missing), 'query')} without a passage under {field!r} (for "
            f"example {missing[0]!r}; keys of the file: {', '.join(sorted(keys)) or 'none'})"
        )
    return {query: passages[query] for query in queries}


def write_passages(
    writer: PassageWriter,
    queries: Mapping[str, str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[dict[str, str], Usage]:
    """A passage for each query, from the store or from the model.

    Raises:
        ConfigError: The key is missing, or the prompt is wrong.
        ProviderError: A call failed for good; passages that came before are stored.
    """

    async def collect() -> tuple[list[bytes], Usage]:
        async with writer.open_model() as model:
            return await collect_answers(model, [*queries.values()], store, on_progress)

    values, usage = asyncio.run(collect())
    passages = {query: value.decode() for query, value in zip(queries, values, strict=True)}
    return passages, usage


def save_passages(path: Path, passages: Mapping[str, str], field: str) -> Path:
    """Write what :func:`read_passages` reads.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    rows = ({"id": query, field: passage} for query, passage in passages.items())
    return write_output(path, encode_json_lines(rows), option="--save-passages")
