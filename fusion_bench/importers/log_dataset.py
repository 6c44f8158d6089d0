"""A log of searches → a folder that ``eval``, ``tune``, ``gate`` take, checked by a replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Final, TypeVar

from fusion_bench.config.models import parse_model
from fusion_bench.config.query_types import CONV_03_05, UNSURE, type_of
from fusion_bench.config.yaml_files import format_compact_yaml
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError
from fusion_bench.experiment.experiment import EXPERIMENT_FILE
from fusion_bench.experiment.system import System
from fusion_bench.importers.options import LogOptions
from fusion_bench.importers.search_log import (
    PRODUCTION,
    RERANK,
    STRATEGIES,
    LoggedQueries,
    LoggedQuery,
    collect_lists,
    describe_query,
    read_log,
)
from fusion_bench.io.dataset_config import make_dataset_name
from fusion_bench.io.held_out import refuse_copy
from fusion_bench.io.json_objects import load_queries, read_objects
from fusion_bench.io.load_records import load_qrels
from fusion_bench.io.outputs import DATASET_FILE
from fusion_bench.io.raw_files import format_suffix
from fusion_bench.io.write_run import RunRows, encode_run
from fusion_bench.ranking.final_lists import align_all_queries, make_final_lists
from fusion_bench.schema import (
    QueryType,
    RerankConfig,
    RRFConfig,
    SearchResultItem,
    SearchStrategy,
    SearchWeights,
    calculate_rrf_score,
)
from fusion_bench.util.files import (
    read_regular,
    remove_on_failure,
    require_free,
    resolve_path,
    write_atomic,
)
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.json_text import encode_json_lines

#: Name of the system that replays production.
REPLAY = "replay"
#: Differences of scores below this are rounding.
ROUNDING = 1e-9


@dataclass(frozen=True)
class ReplayCheck:
    """How much of the log the replay gives back.

    Attributes:
        queries: How many queries there are.
        same_order: How many have the logged results in the logged order.
        differing: Ids of the others.
        same_scores: How many have the logged combined scores.
    """

    queries: int
    same_order: int
    differing: tuple[str, ...]
    same_scores: int


def _count_same_scores(
    queries: Sequence[LoggedQuery], lists: Mapping[str, RunRows], config: RRFConfig
) -> int:
    """How many queries have the combined scores that reciprocal rank fusion gives these lists."""
    ranks: dict[tuple[str, str], dict[SearchStrategy, int]] = {}
    for name, rows in lists.items():
        for pair, rank in zip(
            zip(rows.queries, rows.documents, strict=True), rows.ranks, strict=True
        ):
            ranks.setdefault(pair, {})[SearchStrategy(name)] = rank
    return sum(
        all(
            abs(
                item.relevance.combined
                - calculate_rrf_score(
                    ranks.get((query.id, item.id), {}), query.query.options.weights, config
                )
            )
            <= ROUNDING
            for item in query.items
        )
        for query in queries
    )


def check_replay(
    queries: Sequence[LoggedQuery],
    lists: Mapping[str, RunRows],
    rerank: RunRows | None,
    production: Mapping[str, Any],
    same_scores: int,
) -> ReplayCheck:
    """Rank every query as the replaying system does, and compare with what was returned."""
    system = parse_model(System, {"name": REPLAY, **production})
    facts = [describe_query(query) for query in queries]
    known = {
        each["id"]: Query(each["id"], type=each["type"], confidence=each.get("confidence"))
        for each in facts
    }
    runs = align_all_queries(
        [_to_run(lists[name]) for name in STRATEGIES if name in lists],
        rerankers=[] if rerank is None else [_to_run(rerank)],
        queries=known,
        ties="first_seen",
        spaces={RERANK: "unit"},
    )
    final = make_final_lists(system, runs).to_run().to_dict()
    differing = tuple(
        query.id
        for query in queries
        if list(final.get(query.id, {})) != [item.id for item in query.items]
    )
    return ReplayCheck(len(queries), len(queries) - len(differing), differing, same_scores)


def _to_run(rows: RunRows) -> Run:
    roles = frozenset({rows.name}) if rows.name in STRATEGIES else frozenset()
    return Run.from_rows(rows.name, rows.queries, rows.documents, rows.scores, roles=roles)


WRITTEN_BY: Final = "# Written by: fusion-bench dataset from-logs\n"
NO_QRELS: Final = """\
# Missing: the judgments. A log says what was returned, and not what was relevant. Make them with
# 'fusion-bench judge' on this folder; or write 'qrels: qrels.txt' below, and that file with one
# 'QUERY 0 DOCUMENT GRADE' a line; or run this command again with --qrels FILE and another --out
# folder. Until then eval, tune and gate refuse the dataset.
"""


def write_folder(
    folder: Path,
    name: str,
    queries: Sequence[LoggedQuery],
    runs: Mapping[str, RunRows],
    rerank: RunRows | None,
    replay: Mapping[str, Any],
    qrels: Path | None,
) -> list[Path]:
    """Write the dataset and the experiment.

    Args:
        folder: Where to; created if missing.
        name: The dataset's name; characters that it cannot have become dashes.
        queries: The queries.
        runs: The lists by name.
        rerank: The rerank list.
        replay: The system that replays production.
        qrels: Judgments to copy; None = the dataset says that they are missing.

    Raises:
        ConfigError: An open campaign holds out queries of the judgments.
        FusionBenchError: The folder cannot be written to.
    """
    judgments = None
    if qrels is not None:
        packed = ".gz" if qrels.suffix.lower() == ".gz" else ""
        judgments = f"qrels{format_suffix(qrels)}{packed}"
    lists = {folder / f"runs/{key}.jsonl": rows for key, rows in runs.items()}
    if rerank is not None:
        lists[folder / f"{RERANK}/{RERANK}.jsonl"] = rerank
    facts = (describe_query(query) for query in queries)
    texts = {
        DATASET_FILE: _dataset_text(name, judgments, runs, rerank),
        EXPERIMENT_FILE: _experiment_text(runs, replay),
    }
    contents = {key: text.encode() for key, text in texts.items()}
    contents["queries.jsonl"] = encode_json_lines(facts)
    contents["documents.jsonl"] = encode_json_lines(_describe_documents(queries))
    if qrels is not None and judgments is not None:
        refuse_copy(qrels)
        contents[judgments] = read_regular(qrels)
    require_free(folder, (*contents, *(str(path.relative_to(folder)) for path in lists)))
    with remove_on_failure() as new:
        new += [*lists, *map(folder.joinpath, contents)]
        files = [write_atomic(path, encode_run(path, rows)) for path, rows in lists.items()]
        written = [write_atomic(folder / key, data) for key, data in contents.items()]
        return [*written, *files]


def _dataset_text(
    name: str, qrels: str | None, runs: Mapping[str, RunRows], rerank: RunRows | None
) -> str:
    lists: dict[str, Any] = {}
    for key in runs:
        lists[key] = {"path": f"runs/{key}.jsonl"}
        lists[key] |= {"roles": [key]} if key in STRATEGIES else {}
    lists[PRODUCTION]["rank_from"] = "column"
    data: dict[str, Any] = {
        "name": make_dataset_name(name, "log"),
        "description": "Logged searches.",
        **({} if qrels is None else {"qrels": qrels}),
        "queries": "queries.jsonl",
        "documents": "documents.jsonl",
        "runs": lists,
    }
    if rerank is not None:
        data["rerank"] = {RERANK: {"path": f"{RERANK}/{RERANK}.jsonl", "score_space": "unit"}}
    return f"{WRITTEN_BY}{NO_QRELS if qrels is None else ''}{format_compact_yaml(data)}"


def _experiment_text(runs: Mapping[str, RunRows], replay: Mapping[str, Any]) -> str:
    single = {key: {"runs": [key]} for key in runs}
    data = {
        "description": (
            "Production as it was logged, and the system that replays it. A comparison with the "
            "best single source counts 'production', the logged final list, as a source."
        ),
        "dataset": DATASET_FILE,
        "ties": "first_seen",
        "baseline": PRODUCTION,
        "systems": {PRODUCTION: single.pop(PRODUCTION), REPLAY: dict(replay), **single},
        "tune": {"system": REPLAY},
    }
    return f"{WRITTEN_BY}{format_compact_yaml(data)}"


def _describe_documents(queries: Sequence[LoggedQuery]) -> Iterable[dict[str, Any]]:
    """Each document with what all results say of it; a later result's value replaces an earlier.

    The keys keep the order in which they first appear: ``{...earlier, ...later}`` of JavaScript.
    """
    documents: dict[str, dict[str, Any]] = {}
    for query in queries:
        for item in query.items:
            documents[item.id] = documents.get(item.id, {}) | _describe_document(item)
    return documents.values()


def _describe_document(item: SearchResultItem) -> dict[str, Any]:
    content = item.content.model_dump(mode="json", by_alias=True, exclude_none=True)
    sources = item.sources.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"id": item.id, **content, "type": str(item.type), **sources}


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
        log: JSON Lines of searches; see :func:`~fusion_bench.importers.search_log.read_log`.
        options: See there.

    Raises:
        ConfigError: The folder holds a dataset already.
        DataError: A line of the log, of the judgments or of the queries breaks a rule, no judgment
            is of a logged query, or no strategy returned anything.
    """
    require_free(options.out, (DATASET_FILE, EXPERIMENT_FILE))
    known = None if options.queries is None else _load_named_queries(options.queries)
    grouped = read_log(log, known, on_duplicate=options.on_duplicate)
    queries = grouped.queries
    if options.qrels is not None:
        _check_judged(options.qrels, queries)
    runs = collect_lists(queries)
    counted, rerank = dict(runs), runs.pop(RERANK, None)
    lists = {name: rows for name, rows in runs.items() if name != PRODUCTION}
    if not lists:
        raise DataError(f"{log}: no result has a keyword, semantic or graph score above 0")
    rrf, same_scores = _choose_scale(queries, lists, options.k)
    keys, notes = _describe_production(queries, list(lists), rrf, is_reranked=rerank is not None)
    check = check_replay(queries, lists, rerank, keys, same_scores)
    files = write_folder(
        options.out,
        options.name or resolve_path(options.out).name,
        queries,
        runs,
        rerank,
        keys,
        options.qrels,
    )
    return LogDataset(
        files=tuple(files),
        queries=len(queries),
        lists={name: len(rows.documents) for name, rows in counted.items()},
        check=check,
        notes=(*_list_notes(grouped, check, options), *notes),
    )


def _load_named_queries(path: Path) -> dict[str, Query]:
    """The queries of a file of which at least one has a text."""
    items = list(read_objects(path))
    if items and not any(item.get("text") for _, item in items):
        where, item = items[0]
        raise DataError(
            f"{where}: a query needs a 'text', the logged one (found: "
            f"{', '.join(item) or 'nothing'})"
        )
    return load_queries(path)


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
    counts = [_count_same_scores(queries, lists, config) for config in choices]
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
    if grouped.unsearched:
        yield (
            f"{pluralize(len(grouped.unsearched), 'classification')} left out: no search has the "
            f"text (for example {grouped.unsearched[0]!r:.80})"
        )


V = TypeVar("V", bound=Hashable)


def _describe_production(
    queries: Sequence[LoggedQuery],
    strategies: Sequence[str],
    rrf: RRFConfig,
    *,
    is_reranked: bool,
) -> tuple[dict[str, Any], list[str]]:
    """The system that fuses, reranks, filters and cuts as production was asked to.

    Args:
        queries: The queries.
        strategies: The lists that there are.
        rrf: How they are fused.
        is_reranked: Whether there is a rerank list.

    Returns:
        Its keys, as in YAML; settings that differ from query to query, where one had to be chosen.
    """
    notes: list[str] = []
    fusion: dict[str, Any] = {"method": "rrf", "k": rrf.k}
    if rrf.normalize_scores:
        fusion["normalize"] = "three_lists"
    fusion["weights"] = _describe_weights(queries, strategies, notes)
    keys: dict[str, Any] = {"runs": list(strategies), "fusion": fusion}
    if is_reranked:
        depth = RerankConfig().top_k
        keys["blend"] = {"method": "replace", "reranker": RERANK, "depth": depth}
        keys["blend"]["missing"] = "below"
    least = _choose_most_common(
        "minRelevance", (query.query.filters.min_relevance for query in queries), notes
    )
    if least > 0:
        keys["min_relevance"] = least
    keys["top_k"] = _choose_most_common("offset + limit", (query.top_k for query in queries), notes)
    return keys, notes


def _describe_weights(
    queries: Sequence[LoggedQuery], strategies: Sequence[str], notes: list[str]
) -> object:
    """The weights of all queries, or by query type where they differ by it."""
    by_type: dict[str, list[SearchWeights]] = {}
    for query in queries:
        facts = describe_query(query)
        kind = type_of(facts["type"], facts.get("confidence"), tuple(QueryType))
        by_type.setdefault(kind, []).append(query.query.options.weights)
    everywhere = {weights for values in by_type.values() for weights in values}
    if len(everywhere) == 1:
        return _keep(everywhere.pop().model_dump(), strategies)
    table = {
        query_type: _choose_most_common(f"weights of type {query_type!r}", values, notes)
        for query_type, values in by_type.items()
    }
    if len(set(table.values())) == 1:
        return _keep(next(iter(table.values())).model_dump(), strategies)
    weights = {name: _keep(value.model_dump(), strategies) for name, value in table.items()}
    weights.setdefault(UNSURE, _keep(CONV_03_05[UNSURE], strategies))
    return {"by_query_type": weights}


def _keep(weights: Mapping[str, float], strategies: Sequence[str]) -> dict[str, float]:
    """The weights of the lists that there are."""
    return {name: weights[name] for name in strategies}


def _choose_most_common(what: str, values: Iterable[V], notes: list[str]) -> V:
    """The most common value; a note where it is not the only one."""
    counts = Counter(values)
    value, count = counts.most_common(1)[0]
    others = counts.total() - count
    if others:
        text = value if not isinstance(value, SearchWeights) else value.model_dump()
        notes.append(
            f"{what} differs: {text} is used, and {pluralize(others, 'query')} had another"
        )
    return value
