"""``fusion-bench pull`` as a function: queries in, a dataset on disk."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.engines import pulled_dataset
from fusion_bench.engines.connectors import Connector, connectors
from fusion_bench.engines.connectors._base import has_control
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull_answers import Answer, PullStore, PullWork
from fusion_bench.engines.pull_questions import (
    FUSED_LIST,
    ListPlan,
    describe_settings,
    find_vectors,
    list_questions,
)
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.held_out import read_everything
from fusion_bench.io.json_objects import load_queries, read_objects
from fusion_bench.io.outputs import DATASET_FILE, check_output
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.util.files import lock_folder, require_folder
from fusion_bench.util.formatting import Columns, TableView, pluralize

#: Folder of the answers, in the dataset's folder.
UNFINISHED: Final = ".pull"
ANSWERS: Final = "answers.sqlite"


def _check_unfinished(folder: Path, *, start_over: bool) -> None:
    """Refuse a folder whose files this pull may not replace.

    Args:
        folder: Of the dataset.
        start_over: Whether everything is asked anew.

    Raises:
        ConfigError: It is a file, or holds a dataset that this may not replace, or another's file.
    """
    require_folder(folder)
    path = folder / DATASET_FILE
    if path.exists() and not (start_over or (folder / UNFINISHED / ANSWERS).exists()):
        raise ConfigError(
            f"{path}: there is a dataset already: name another folder with --out, or pull it anew "
            "with --replace"
        )
    if path.exists() and not (folder / pulled_dataset.RECORD_FILE).exists():
        raise ConfigError(f"{path}: no pull made this dataset: name another folder with --out")
    for name in (
        () if path.exists() else (pulled_dataset.QUERIES_FILE, pulled_dataset.DOCUMENTS_FILE)
    ):
        check_output(folder / name)


@contextmanager
def open_stores(out: Path, *, start_over: bool) -> Iterator[tuple[PullStore, AnswerStore]]:
    """The answers of the engine and those of encoders; one pull at a time uses them.

    Args:
        out: The dataset's folder, made if need be.
        start_over: Whether answers of an earlier pull are forgotten.

    Raises:
        FusionBenchError: The folder cannot be used, or holds what this pull may not replace.
    """
    folder = out / UNFINISHED
    is_new, is_used = not out.exists(), False
    with lock_folder(out, "another pull uses it"):
        _check_unfinished(out, start_over=start_over)  # another pull may just have ended
        pulled_dataset.finish_replacement(out)
        if start_over:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        try:
            with (
                closing(PullStore(folder / ANSWERS)) as answers,
                closing(AnswerStore(folder / "vectors.sqlite")) as vectors,
            ):
                try:
                    yield answers, vectors
                finally:
                    is_filled = answers.read_identity() is not None or not vectors.is_empty()
                    is_used = is_filled and not answers.is_done
        finally:
            if not is_used:
                shutil.rmtree(folder, ignore_errors=True)
            if is_new and not is_used and not (out / DATASET_FILE).exists():
                shutil.rmtree(out, ignore_errors=True)  # nothing was asked: leave nothing


#: Called with what is done now, the steps done, and all steps.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, repr=False)
class PulledDataset(TableView):
    """A dataset on disk.

    Attributes:
        folder: Where it is.
        record: How it was pulled.
        files: What was written.
    """

    folder: Path
    record: pulled_dataset.PullRecord
    files: tuple[Path, ...]

    @property
    def notes(self) -> list[str]:
        """One sentence for each thing that is worth knowing."""
        record = self.record
        notes = [note for each in record.lists for note in _note_list(each)]
        if record.without_text:
            notes.append(f"{record.without_text:,} documents came without a text.")
        if record.coverage is not None:
            notes.append(
                f"documents.jsonl has the texts of {record.coverage}: 'retrieve' searches no "
                "others; --all-texts pulls all."
            )
        if record.is_changed:
            notes.append(
                "degraded: the index changed while it was asked, so that lists of one query may be "
                "of two states of it: pull again with --replace."
            )
        if record.failed:
            query, reason = next(iter(record.failed.items()))
            count = pluralize(len(record.failed), "query")
            notes.append(
                f"degraded: {count} left out (for example {query}: {reason}). The same command "
                "without --replace asks them again, and no other."
            )
        if record.is_replay_outdated:
            notes.append(
                "experiment.yaml stays, and its replay has the window and the limit of an earlier "
                "pull: correct depth and top_k, or delete the file and pull again with --replace."
            )
        if record.dropped:
            notes.append(
                f"{', '.join(record.dropped)}: of the pull before this one, so dataset.yaml names "
                "it no more; the file stays."
            )
        return notes

    def _summary(self) -> str:
        lists = ", ".join(each.name for each in self.record.lists)
        return f"PulledDataset({str(self.folder)!r}, {self.record.queries} queries; {lists})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        lists = self.record.lists[:limit]
        return {
            "list": [each.name for each in lists],
            "queries": [each.queries for each in lists],
            "hits": [each.hits for each in lists],
            **{key: [each.latency_ms[key] for each in lists] for key in ("p50", "p95", "p99")},
        }


def pull_dataset(
    connector: Connector,
    queries: Path | Mapping[str, str],
    options: PullOptions,
    on_progress: Progress = lambda *_: None,
) -> PulledDataset:
    """Ask an engine for every list of every query, and write the dataset.

    What was asked before, by a run that did not end, is not asked again.

    Args:
        connector: The engine.
        queries: JSON Lines with the id and the text of each query; or query id → text.
        options: What is pulled, and where it goes.
        on_progress: Called with what is done now, the steps done, and all steps.

    Raises:
        FusionBenchError: An input or an option breaks a rule, the engine failed, or a file cannot
            be written. Answers stay in the folder until the dataset is written.
    """
    _check_unfinished(options.out, start_over=options.start_over)
    if options.all_texts and not connector.lists_documents:
        able = [name for name, model in connectors.load_all().items() if model.lists_documents]
        raise ConfigError(
            f"--all-texts: {connector.method} cannot list its documents here ({', '.join(able)} "
            "can): use --texts, or give 'retrieve' a file of all texts with --documents"
        )
    if FUSED_LIST in connector.legs:
        raise ConfigError(f"legs.{FUSED_LIST}: the fused answer has this name: rename the leg")
    depth = options.depth
    plans = [ListPlan(name, leg.depth or depth) for name, leg in connector.legs.items()]
    for plan in plans:
        connector.check_depth(plan.name, plan.depth)
    if connector.fused is not None:
        connector.check_depth("", depth)
        plans.append(ListPlan(FUSED_LIST, depth, is_fused=True))
    objects = _read_queries(queries)
    with open_stores(options.out, start_over=options.start_over) as (answers, vectors):
        texts = {query: str(item["text"]) for query, item in objects.items()}
        query_vectors = find_vectors(
            connector,
            texts,
            options.vectors,
            vectors,
            lambda done, total: on_progress("encoding", done, total),
        )
        questions = list_questions(plans, texts, query_vectors, with_texts=options.texts)
        work = PullWork(
            connector,
            options,
            questions,
            answers,
            is_of_dataset=not options.start_over and (options.out / DATASET_FILE).exists(),
            on_progress=lambda done, total: on_progress("pulling", done, total),
        )
        asyncio.run(work.ask_questions())
        on_progress("writing", 0, 1)
        pulled = _collect_lists(plans, work, objects)
        files = pulled_dataset.write_folder(options.out, pulled)
        answers.is_done = not work.failed
    return PulledDataset(options.out, pulled.record, tuple(files))


@read_everything()
def _read_queries(given: Path | Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The queries as their file has them, by id.

    Raises:
        DataError: A line breaks a rule, or a query has no text.
    """
    if isinstance(given, Path):
        known = load_queries(given)
        rows = [(f"{where}: ", item) for where, item in read_objects(given)]
        names = [known[str(item.get("id", item.get("_id")))].id for _, item in rows]
    else:
        rows = [("", {"text": text}) for text in given.values()]
        names = [str(query) for query in given]
    if not rows:
        raise DataError("queries: at least one {id: text} is needed")
    objects = {}
    for (where, item), name in zip(rows, names, strict=True):
        text = item.get("text")
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}query {name!r} has no 'text': give it one")
        if not name or has_control(name):
            raise DataError(f"{where}the id {name!r} is empty or holds a control character")
        rest = {key: value for key, value in item.items() if key not in {"id", "_id"}}
        objects[name] = {"id": name, **rest}
    return objects


def _collect_lists(
    plans: Sequence[ListPlan],
    work: PullWork,
    objects: Mapping[str, Mapping[str, Any]],
) -> pulled_dataset.PulledLists:
    """Collect the answers of all queries that did not fail.

    Raises:
        DataError: No query is left, or nothing was returned for any.
    """
    options = work.options
    answers: dict[str, dict[str, Answer]] = {plan.name: {} for plan in plans}
    texts = {name: text for name, text in work.documents.items() if text is not None}
    documents: set[str] = set()
    for question in work.questions:
        if question.query.id in work.failed:
            continue
        answer = work.store.read_answer(question.key)
        answers[question.plan.name][question.query.id] = answer
        documents.update(hit.document for hit in answer.hits)
        for hit in answer.hits:
            if hit.text is not None:
                texts.setdefault(hit.document, hit.text)
    if work.failed and len(work.failed) == len(objects):
        raise DataError(f"no query could be pulled: {next(iter(work.failed.values()))}")
    if not documents:
        raise DataError(
            f"{work.connector.method}: no list holds a document: check the index, the fields "
            "of the legs and the queries"
        )
    kept = [plan for plan in plans if any(each.hits for each in answers[plan.name].values())]
    record = _make_record(plans, work, answers)
    earlier = pulled_dataset.read_record(options.out)
    written = set() if earlier is None else {each.name for each in earlier.lists if each.hits}
    dropped = written - {plan.name for plan in kept}
    changes: dict[str, Any] = {"dropped": tuple(sorted(dropped))}
    has_texts = options.texts or options.all_texts
    if has_texts:
        changes |= {
            "documents": len(texts),
            "without_text": len((documents | work.documents.keys()) - texts.keys()),
            "all_texts": options.all_texts,
        }
    return pulled_dataset.PulledLists(
        work.connector,
        options,
        kept,
        answers,
        [item for query, item in objects.items() if query not in work.failed],
        texts if has_texts else None,
        record.model_copy(update=changes),
    )


def _make_record(
    plans: Sequence[ListPlan],
    work: PullWork,
    answers: Mapping[str, Mapping[str, Answer]],
) -> pulled_dataset.PullRecord:
    connector = work.connector
    lists = []
    for plan in plans:
        listed = [*answers[plan.name].values()]
        scores = [[hit.score for hit in answer.hits] for answer in listed]
        latencies = [answer.latency_ms for answer in listed]
        values = np.percentile(latencies, PERCENTILES, method="inverted_cdf").tolist()
        fused = "the engine's fused score"
        summary = pulled_dataset.ListRecord(
            name=plan.name,
            is_fused=plan.is_fused,
            score=fused if plan.is_fused else connector.describe_score(plan.name),
            depth=plan.depth,
            queries=len(listed),
            empty=sum(not answer.hits for answer in listed),
            hits=sum(len(answer.hits) for answer in listed),
            longest=max(len(answer.hits) for answer in listed),
            surplus=sum(answer.surplus for answer in listed),
            unordered=sum(any(a < b for a, b in pairwise(each)) for each in scores),
            rising=sum(len({*each}) > 1 and each == sorted(each) for each in scores),
            retries=sum(answer.retries for answer in listed),
            latency_ms={f"p{p}": round(v, 3) for p, v in zip(PERCENTILES, values, strict=True)},
        )
        lists.append(summary)
    return pulled_dataset.PullRecord(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        engine=connector.method,
        settings=describe_settings(connector),
        fingerprint=work.fingerprint,
        is_changed=work.is_changed,
        queries=len(next(iter(answers.values()))),
        asked=work.asked,
        lists=tuple(lists),
        failed=work.failed,
        is_replay_outdated=pulled_dataset.replays_another_request(
            work.options.out, connector, work.options.depth
        ),
    )


#: From so many queries on, equally long lists are no accident.
MANY_QUERIES: Final = 10
PERCENTILES: Final = (50, 95, 99)


def _note_list(record: pulled_dataset.ListRecord) -> Sequence[str]:
    notes = []
    if record.hits == 0:
        notes.append(f"{record.name} returned nothing for any query, and is left out.")
    elif record.empty:
        rest = f"{record.empty} of {record.queries} queries"
        notes.append(f"{record.name} returned nothing for {rest}.")
    is_even = record.hits and record.longest * (record.queries - record.empty) == record.hits
    if is_even and record.longest < record.depth and record.queries >= MANY_QUERIES:
        notes.append(
            f"{record.name} returned {pluralize(record.longest, 'document')} for each query, and "
            f"{record.depth:,} were asked for: the index holds no more, or a limit of the engine's "
            "own applies."
        )
    if record.surplus:
        notes.append(f"{record.name} sent {record.surplus:,} hits beyond its depth: dropped.")
    if record.rising and record.rising >= record.queries - record.empty:
        notes.append(
            f"The scores of {record.name} rise from the first hit to the last, as distances do: "
            "turn their sign where you can. The ranks are the engine's."
        )
    elif record.unordered:
        notes.append(
            f"The scores of {record.name} do not fall from hit to hit for {record.unordered} of "
            f"{record.queries} queries. The ranks are the engine's (rank_from: column)."
        )
    return notes
