"""Why the documents of a list do not meet the judgments, where that can be proven by trying.

Another field of the same hits, or a rule for ids, is named only if it was tried on this data, with
what it makes meet and the option that applies it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeAlias, cast

import numpy as np

from fusion_bench.checks.records import ListInfo
from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.data.id_rules import describe_rule, find_rule
from fusion_bench.data.run import Run
from fusion_bench.errors import FusionBenchError
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.load_records import FileRequest, load_tables
from fusion_bench.io.raw_files import read_text

#: A cause is named where it makes this part of the ids meet.
LEAST_MET: Final = 0.2
#: What often separates a document's id from the number of a chunk.
CHUNK_MARKS: Final = ("#", ":", "_", "-", "/", ".", "|")
#: Fields of a hit that are tried, those that name most judged documents first.
MOST_FIELDS: Final = 20
#: Files of a folder that are looked at.
MOST_FILES: Final = 100
#: Option → how a command writes it, and the argument of Python.
_OPTIONS: Final = {
    "ids": ("--ids {name}={value}", "ids"),
    "order": ("--order {name}={value}", "order"),
    "document": ("--run-columns {name}:document={value}", "columns"),
    "score_space": ("--rerank {name}:{value}=FILE", "score_spaces"),
}


#: Why ids do not meet: what would meet, and the option that does it, a sentence each.
IdCause: TypeAlias = tuple[str, str]


def find_cause(dataset: Dataset, info: ListInfo, meeting: Sequence[str]) -> IdCause | None:
    """Find why documents of a list are not judged.

    Args:
        dataset: With the list.
        info: What was noticed about it.
        meeting: Lists that name judged documents, as ``runs/NAME`` and ``rerank/NAME``.

    Returns:
        None where nothing that was tried makes a fifth of them meet.
    """
    repeat = dataset.repeats[(info.trial or 1) - 1]
    lists = repeat.runs if info.kind == "run" else repeat.rerankers
    run, request = lists[info.name], repeat.files.get(info.key)
    field = None if request is None else _find_field(dataset, request, run, info.key)
    return field or _find_parents(dataset, run) or _find_rule(dataset, run, info.key, meeting)


def name_option(dataset: Dataset, key: str, option: str, value: str) -> str:
    """Say how a value is given for a list: in ``dataset.yaml``, to a command, or in Python.

    Args:
        dataset: With the list.
        key: ``runs/NAME``, ``rerank/NAME`` or ``qrels``.
        option: ``ids``, ``order``, ``document`` or ``score_space``.
        value: The value.
    """
    command, argument = _OPTIONS[option]
    name = key.rpartition("/")[2]
    if dataset.has_file:
        text = value if re.fullmatch(r"[\w.:/-]*\w", value) else json.dumps(value)
        pair = f"columns: {{document: {text}}}" if option == "document" else f"{option}: {text}"
        return f"'{pair}' beside the path of {name} in dataset.yaml"
    if dataset.files:
        return command.format(name=quote(name), value=quote(value))
    return f"{argument}={{{name!r}: {value!r}}}"


def _find_parents(dataset: Dataset, run: Run) -> IdCause | None:
    """The separator before which most ids hold a judged document, and some ids are alike."""
    ids, judged = list(run.vocabulary), set(dataset.qrels.vocabulary)
    parents = {mark: [name.split(mark)[0] for name in ids if mark in name] for mark in CHUNK_MARKS}
    counts = {mark: sum(name in judged for name in names) for mark, names in parents.items()}
    mark = max(counts, key=lambda each: counts[each])
    if counts[mark] < LEAST_MET * len(judged) or len({*parents[mark]}) == len(parents[mark]):
        return None
    rule = f"{{by: {{split: {json.dumps(mark)}}}, score: max}}"
    return (
        f"{counts[mark]:,} of {len(ids):,} hold a judged document before {mark!r}.",
        f"If they are chunks of these documents, write 'collapse: {rule}' in each system.",
    )


def _find_rule(dataset: Dataset, run: Run, key: str, meeting: Sequence[str]) -> IdCause | None:
    """The rule that makes most ids meet; one for judgments changes the lists that meet, too."""
    ids, judged = list(run.vocabulary), list(dataset.qrels.vocabulary)
    found = find_rule(ids, judged)
    total = min(len(ids), len(judged))
    if found is None or found.matches < LEAST_MET * total:
        return None
    keys = [] if found.side == "targets" else [key]
    keys += [] if found.side == "ids" else ["qrels", *meeting]
    options = [name_option(dataset, each, "ids", found.rule) for each in keys]
    return (
        f"{found.matches:,} of {total:,} would match {describe_rule(found.rule)}.",
        f"If that is right, {'write' if dataset.has_file else 'add'} {' and '.join(options)}.",
    )


def _find_field(dataset: Dataset, request: FileRequest, run: Run, key: str) -> IdCause | None:
    """The first field of the hits under which the file is read and names judged documents."""
    layout, judged = request.layout, set(dataset.qrels.vocabulary)
    request = replace(request, read_options=run.read_options, later_paths=())
    for field in _list_fields(request.path, judged):
        columns = {**layout.columns, "document": field}
        asked = replace(request, layout=replace(layout, columns=columns))
        with suppress(FusionBenchError, ValueError):
            read = cast("Run", load_tables([asked], None)[0][0])
            is_judged = np.array([name in judged for name in read.vocabulary], dtype=bool)
            hits, met = len(read.documents), int(np.count_nonzero(is_judged[read.documents]))
            if met and met >= LEAST_MET * hits:
                option = name_option(dataset, key, "document", field)
                return (
                    f"Its field {field!r} names judged documents in {met:,} of {hits:,} hits.",
                    f"If that is the document, {'write' if dataset.has_file else 'add'} {option}.",
                )
    return None


def _list_fields(path: Path, judged: Collection[str]) -> Iterator[str]:
    """Names of columns, or of keys in JSON that lead to judged documents, inner keys first."""
    counts: Counter[tuple[str, ...]] = Counter()
    files = sorted(path.iterdir())[:MOST_FILES] if path.is_dir() else [path]
    for file in files:
        with suppress(FusionBenchError, OSError):
            text = read_text(file)
            if text.lstrip()[:1] in {"{", "["}:
                for value in _parse_json(text):
                    _count_keys(value, (), judged, counts)
            else:
                names = re.split(r"[,;\t]", text.partition("\n")[0].strip())
                counts.update((name.strip('" '),) for name in names)
    others = {name for role in COLUMN_NAMES if role != "document" for name in COLUMN_NAMES[role]}
    listed = [keys for keys in counts if keys[-1].lower() not in others]
    for keys in sorted(listed, key=lambda keys: -counts[keys])[:MOST_FIELDS]:
        yield from (".".join(keys[-size:]) for size in range(1, len(keys) + 1))


def _parse_json(text: str) -> list[Any]:
    """The value of a JSON text, or that of each line; none where it is no JSON."""
    for parts in ([text], text.splitlines()):
        with suppress(ValueError, RecursionError):
            return [json.loads(part) for part in parts if part.strip()]
    return []


def _count_keys(
    value: object, keys: tuple[str, ...], judged: Collection[str], counts: Counter[tuple[str, ...]]
) -> None:
    """Count judged documents by the keys that lead to them; lists add none."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _count_keys(inner, (*keys, str(key)), judged, counts)
    elif isinstance(value, list):
        for inner in value:
            _count_keys(inner, keys, judged, counts)
    elif keys and str(value) in judged:
        counts[keys] += 1
