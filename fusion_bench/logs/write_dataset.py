"""A log → a folder that ``eval``, ``tune`` and ``gate`` take as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from fusion_bench.data.records import Query
from fusion_bench.errors import DataError
from fusion_bench.io.json_objects import load_queries, read_objects
from fusion_bench.io.load_records import load_qrels
from fusion_bench.io.write_run import RunRows
from fusion_bench.logs.lists_of_log import (
    PRODUCTION,
    RERANK,
    list_of_production,
    list_of_rerank,
    lists_of_strategies,
)
from fusion_bench.logs.logged_queries import (
    LoggedQueries,
    LoggedQuery,
    OnDuplicate,
    group_searches,
)
from fusion_bench.logs.production import describe_production
from fusion_bench.logs.read_log import SearchLog, read_log
from fusion_bench.logs.replay import ReplayCheck, check_replay, count_same_scores
from fusion_bench.logs.write_folder import check_free, write_folder
from fusion_bench.schema import RRFConfig
from fusion_bench.util.files.real_paths import resolve_path
from fusion_bench.util.formatting import pluralize


@dataclass(frozen=True)
class LogOptions:
    """What a user asks of a log.

    Attributes:
        out: The folder to write.
        qrels: Judgments, copied; None = there are none.
        queries: Queries whose texts name the logged ones; None = ``q1``, ``q2``, …
        name: The dataset's name; None = the folder's.
        k: The constant of production's reciprocal rank fusion.
        on_duplicate: See :func:`~fusion_bench.logs.logged_queries.group_searches`.
    """

    out: Path
    qrels: Path | None = None
    queries: Path | None = None
    name: str | None = None
    k: int = RRFConfig().k
    on_duplicate: OnDuplicate = "error"


@dataclass(frozen=True)
class LogDataset:
    """What was made of a log.

    Attributes:
        files: The files that were written.
        queries: How many queries it has.
        lists: How many documents each list has, over all queries.
        check: How much of the log the replay gives back.
        notes: What a user should know.
    """

    files: tuple[Path, ...]
    queries: int
    lists: dict[str, int]
    check: ReplayCheck
    notes: tuple[str, ...]


def write_log_dataset(log: Path, options: LogOptions) -> LogDataset:
    """Write the dataset of a log, and an experiment that replays production.

    Args:
        log: JSON Lines of searches; see :func:`~fusion_bench.logs.read_log.read_log`.
        options: See there.

    Raises:
        ConfigError: The folder holds a dataset already.
        DataError: A line of the log, of the judgments or of the queries breaks a rule, no judgment
            is of a logged query, or no strategy returned anything.
    """
    check_free(options.out)
    known = None if options.queries is None else _load_named_queries(options.queries)
    searches = read_log(log)
    grouped = group_searches(searches, known, on_duplicate=options.on_duplicate)
    queries = grouped.queries
    if options.qrels is not None:
        _check_judged(options.qrels, queries)
    lists, rerank = lists_of_strategies(queries), list_of_rerank(queries)
    if not lists:
        raise DataError(f"{log}: no result has a keyword, semantic or graph score above 0")
    rrf, same_scores = _choose_scale(queries, lists, options.k)
    production = describe_production(queries, list(lists), rrf, is_reranked=rerank is not None)
    check = check_replay(queries, lists, rerank, production, same_scores)
    runs = {**lists, PRODUCTION: list_of_production(queries)}
    files = write_folder(
        options.out,
        options.name or resolve_path(options.out).name,
        queries,
        runs,
        rerank,
        production.keys,
        options.qrels,
    )
    counted = {**runs, **({} if rerank is None else {RERANK: rerank})}
    return LogDataset(
        files=tuple(files),
        queries=len(queries),
        lists={name: len(rows.documents) for name, rows in counted.items()},
        check=check,
        notes=(
            *_list_notes(grouped, check, options),
            *_note_unsearched(searches),
            *production.notes,
        ),
    )


def _load_named_queries(path: Path) -> dict[str, Query]:
    """The queries of a file of which at least one has a text."""
    items = list(read_objects(path))
    if items and not any(item.get("text") for _, item in items):
        number, item = items[0]
        raise DataError(
            f"{path}:{number}: a query needs a 'text', the logged one (found: "
            f"{', '.join(item) or 'nothing'})"
        )
    return load_queries(path)


def _note_unsearched(log: SearchLog) -> Iterator[str]:
    texts = {search.result.query.text for search in log.searches}
    unsearched = [text for text in log.classifications if text not in texts]
    if unsearched:
        yield (
            f"{pluralize(len(unsearched), 'classification')} left out: no search has the text (for "
            f"example {unsearched[0]!r:.80})"
        )


def _check_judged(qrels: Path, queries: Sequence[LoggedQuery]) -> None:
    judged = load_qrels(qrels).queries
    if not set(judged) & {query.id for query in queries}:
        raise DataError(
            f"{qrels}: no query of the log is judged (for example {judged[0]!r} here, "
            f"{queries[0].id!r} in the log): name the logged queries with --queries FILE, one "
            '{"id": …, "text": …} a line'
        )


def _choose_scale(
    queries: Sequence[LoggedQuery], lists: Mapping[str, RunRows], k: int
) -> tuple[RRFConfig, int]:
    """Whether fused scores are normalized, by the logged ones, and how many queries say so."""
    choices = [RRFConfig(k=k, normalize_scores=normalizes) for normalizes in (True, False)]
    counts = [count_same_scores(queries, lists, config) for config in choices]
    best = max(range(len(choices)), key=counts.__getitem__)
    return choices[best], counts[best]


def _list_notes(grouped: LoggedQueries, check: ReplayCheck, options: LogOptions) -> Iterator[str]:
    if options.qrels is None:
        yield (
            "judgments are missing: a log does not say what is relevant. Make them with "
            f"'fusion-bench judge {quote(str(options.out))}', or give --qrels FILE and another "
            "--out folder"
        )
    if options.queries is None:
        yield f"queries are named q1 to q{check.queries} in the order of the log"
    if grouped.without_start:
        count = pluralize(len(grouped.without_start), "query")
        yield (
            f"{count} left out: the results before query.options.offset were not logged (for "
            f"example {grouped.without_start[0]!r:.80})"
        )
    if grouped.repeated:
        yield f"{pluralize(grouped.repeated, 'record')} left out: another has the same page"
    if check.same_scores < check.queries:
        yield (
            f"the logged combined scores are those of rrf with k {options.k} on the logged lists "
            f"for {check.same_scores} of {pluralize(check.queries, 'query')}: documents that were "
            "not returned are missing in the lists, or production fuses otherwise"
        )
    if check.differing:
        yield (
            f"the replay orders {pluralize(len(check.differing), 'query')} otherwise (for example "
            f"{check.differing[0]!r}): 'production' is the list as it was returned"
        )
