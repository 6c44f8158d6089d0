"""What stops an answer: document ids that do not meet, and lists that a check finds false.

A list whose ids are of another kind scores 0, and one that is read backwards scores little. Either
makes a table, a verdict and an advice that look like any other.

A cause of ids that do not meet is named only if it was tried on this data: another field of the
same hits, or a rule for ids, with what it makes meet and the option that applies it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeAlias, cast

import numpy as np

from fusion_bench.checks.records import DataWarning, ListInfo, Obstacle
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.chunk_parents import judged_codes
from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.data.id_rules import describe_rule, find_rule
from fusion_bench.data.read_options import Order
from fusion_bench.data.run import DISTANCES, Run
from fusion_bench.errors import DataCheckError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.load_records import FileRequest, load_tables
from fusion_bench.io.raw_files import read_text
from fusion_bench.util.formatting import format_number, format_percent, pluralize

#: Where two lists share no document, and where one is compared with the others: below this part of
#: the other's share of judged documents its ids are doubted.
LEAST_SHARE: Final = 0.2
#: What mends ids that do not meet if no cause is known.
CHECK_IDS: Final = (
    "Check that the list and the judgments name documents alike: a new index or new chunks have "
    "new ids."
)
#: A cause is named where it makes this part of the ids meet.
LEAST_MET: Final = 0.2
#: What often separates a document's id from the number of a chunk.
CHUNK_MARKS: Final = ("#", ":", "_", "-", "/", ".", "|")
#: Fields of a hit that are tried, those that name most judged documents first.
MOST_FIELDS: Final = 20
#: Files of a folder that are looked at.
MOST_FILES: Final = 100


def find_obstacles(dataset: Dataset, infos: Sequence[ListInfo]) -> tuple[Obstacle, ...]:
    """Find what stops an answer.

    Args:
        dataset: With every list, and each repeat of it.
        infos: What was noticed about each list.

    Returns:
        Ids that do not meet first; none where nothing is judged.
    """
    if not dataset.is_judged:
        return ()
    suspects = (
        Obstacle(kind="suspect", key=key, text=text, remedy=remedy, lists=(info.key,))
        for info in infos
        for key, text, remedy in islice(_list_suspicions(dataset, info), 1)
    )
    return (*_find_unmatched(dataset, infos), *suspects)


def find_other_kinds(systems: Iterable[System], runs: AlignedRuns) -> Iterator[Obstacle]:
    """Find systems whose results are chunks while documents are judged, or the reverse.

    Args:
        systems: Of an experiment.
        runs: Their lists, with the parents that any of them asks for.
    """
    judged, found = judged_codes(runs) if runs.parents else (), dict[str, list[System]]()
    for system in systems if len(judged) else ():
        rows = (runs.ranks[runs.rows(system.base_runs)] > 0).any(axis=0)
        chunks = runs.documents[rows]
        collapse = system.collapse
        rule = next(iter(runs.parents))
        if collapse is not None and collapse.by != "id":
            rule = collapse.rule
        parents = runs.parents[rule][chunks]
        kinds = {"chunks": chunks, "documents": np.where(parents < 0, chunks, parents)}
        is_merged = collapse is not None and collapse.by != "id" and collapse.score is not None
        returned, other = ("documents", "chunks") if is_merged else ("chunks", "documents")
        if not np.isin(kinds[returned], judged).any() and np.isin(kinds[other], judged).any():
            found.setdefault(returned, []).append(system)
    remedies = {
        "documents": "Write 'keep: 1' in place of 'score' in 'collapse'.",
        "chunks": f"Write 'collapse: {{by: {next(iter(runs.parents), '')}, score: max}}' there.",
    }
    for returned, some in found.items():
        other = "chunks" if returned == "documents" else "documents"
        names = ", ".join(system.name for system in some)
        yield Obstacle(
            kind="unmatched",
            key="unmatched documents",
            text=f"The judgments name {other}, and these systems return {returned}: {names}.",
            remedy=remedies[returned],
            lists=tuple({f"runs/{name}": None for each in some for name in each.base_runs}),
        )


def refuse_obstacles(name: str, obstacles: Sequence[Obstacle], allowed: Collection[str]) -> None:
    """Refuse data that no answer can be based on.

    Args:
        name: The dataset.
        obstacles: What was found.
        allowed: Kinds of obstacles that stop nothing.

    Raises:
        DataCheckError: An obstacle is of another kind.
    """
    stopping = [each for each in obstacles if each.kind not in allowed]
    if stopping:
        causes = " ".join(each.statement for each in stopping)
        records = [each.model_dump(mode="json") for each in stopping]
        raise DataCheckError(f"check the data of {name}: {causes}", records)


def _find_unmatched(dataset: Dataset, infos: Sequence[ListInfo]) -> Iterator[Obstacle]:
    """Lists without a judged document, and lists that share none with a better list.

    Each has the cause that can be proven, and what mends it.
    """
    meeting = [info for info in infos if info.has_judged_documents]
    found = [
        (info, "unmatched documents", f"No document of {info.title} is judged.")
        for info in infos
        if not info.has_judged_documents
    ]
    for pair in _find_disjoint(meeting):
        low, high = sorted(pair, key=lambda info: info.judged_share or 0.0)
        if (low.judged_share or 0.0) < LEAST_SHARE * (high.judged_share or 0.0):
            text = (
                f"{low.title} shares no document with {high.title}, and names judged documents in "
                f"{format_percent(low.judged_share)} of its first tens, {high.title} in "
                f"{format_percent(high.judged_share)}."
            )
            found.append((low, "disjoint lists", text))
    for info, key, text in found:
        repeat = dataset.repeats[(info.trial or 1) - 1]
        lists = repeat.runs if info.kind == "run" else repeat.rerankers
        run, request = lists[info.name], repeat.files.get(info.key)
        others = [each.key for each in meeting if each.key != info.key]
        cause = None if request is None else _find_field(dataset, request, run, info.key)
        cause = cause or _find_parents(dataset, run) or _find_rule(dataset, run, info.key, others)
        text, remedy = (text, CHECK_IDS) if cause is None else (f"{text} {cause[0]}", cause[1])
        yield Obstacle(kind="unmatched", key=key, text=text, remedy=remedy, lists=(info.key,))


def _find_disjoint(infos: Sequence[ListInfo]) -> Iterator[tuple[ListInfo, ListInfo]]:
    """Each two lists without a common document; of several repeats the first two."""
    seen = set()
    for first, second in combinations(infos, 2):
        names = (first.key, second.key)
        if first.common_documents.get(second.key) == 0 and names not in seen:
            seen.add(names)
            yield first, second


def _list_suspicions(dataset: Dataset, info: ListInfo) -> Iterator[tuple[str, str, str]]:
    """What is false about a list, the surest first: a key, the cause, and the remedy.

    Args:
        dataset: With the list.
        info: What was noticed about it.
    """
    name, add = info.title, "write" if dataset.has_file else "add"
    if info.delimiter_scores:
        yield (
            "delimiters",
            f"{name} holds {pluralize(info.delimiter_scores, 'score')} that OpenSearch puts "
            "between the parts of a hybrid answer: its documents are of several lists.",
            "Search with a pipeline that has a normalization-processor, or save the answer of each "
            "part as a list of its own.",
        )
    if info.is_reversed:
        what, order = propose_order(info)

        option = name_option(dataset, info.key, "order", order)
        remedy = f"If its scores are {what}, {add} {option}."
        if info.read_options.get("rank_from") == "column":
            remedy = "Check its ranks: 1 must be the best."
        yield (
            "reversed",
            f"{name} seems to be read backwards: nDCG@10 {format_number(info.mean_as_read)}, from "
            f"its end {format_number(info.mean_backwards)}.",
            remedy,
        )
    if info.is_constant and info.kind == "run":
        yield (
            "constant lists",
            f"{name} gives all documents of a query one score, in all its queries: the tie rule "
            "alone orders them.",
            "Give it its scores. If the order of its file counts, write 'source_ties: file' beside "
            "its path in dataset.yaml.",
        )
    if info.reused_run is not None and info.score_space != "order":
        option = name_option(dataset, info.key, "score_space", "order")
        yield (
            "reused scores",
            f"The scores of rerank list {name} are those of {info.reused_run} dealt out again: "
            "only their order means anything.",
            f"If that is right, {add} {option}.",
        )


def propose_order(info: ListInfo) -> tuple[str, Order]:
    """What the scores of a list that is read backwards may be, and the order that says so."""
    return ("similarities", "higher") if DISTANCES in info.notes else ("distances", "lower")


def find_meeting_warnings(infos: Sequence[ListInfo]) -> Iterator[DataWarning]:
    """Warn of lists that may name documents otherwise than the others do.

    Args:
        infos: What was noticed about each list.
    """
    for info in infos:
        others = [each.judged_share or 0.0 for each in infos if each.key != info.key]
        mean, share = sum(others) / max(len(others), 1), info.judged_share
        if info.has_judged_documents and share is not None and share < LEAST_SHARE * mean:
            text = (
                f"{info.title} names judged documents in {format_percent(share)} of its first "
                f"tens, the other lists in {format_percent(mean)} on average. Check that all files "
                "use the same document ids."
            )
            evidence = {"name": info.title, "judged_share": share, "others": mean}
            yield DataWarning(key="few judged documents", text=text, evidence=evidence)
    pairs = [*_find_disjoint([info for info in infos if info.has_judged_documents])]
    if pairs:
        names = "; ".join(f"{first.title} and {second.title}" for first, second in pairs)
        text = (
            f"Lists without a common document: {names}. If they search one collection, check the "
            "document ids."
        )
        evidence = {"pairs": [[first.key, second.key] for first, second in pairs]}
        yield DataWarning(key="disjoint lists", text=text, evidence=evidence)


#: Option → how a command writes it, and the argument of Python.
_OPTIONS: Final = {
    "ids": ("--ids {name}={value}", "ids"),
    "order": ("--order {name}={value}", "order"),
    "document": ("--run-columns {name}:document={value}", "columns"),
    "score_space": ("--rerank {name}:{value}=FILE", "score_spaces"),
}


#: Why ids do not meet: what would meet, and the option that does it, a sentence each.
IdCause: TypeAlias = tuple[str, str]


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
