"""The lists of one live query: hits in any form, from callers or retrievers, as aligned runs."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, TypeAlias, get_args

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns, Ties
from fusion_bench.data.ordering import FloatArray, IntArray, positions
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Condition, Query, ScoreSpace, Switch, meets_condition
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError, did_you_mean
from fusion_bench.experiment.system import System
from fusion_bench.ranking.final_lists import align_all_queries
from fusion_bench.schema.record_fields import SINGLE_STRATEGIES
from fusion_bench.util.calls import await_contained, call_function
from fusion_bench.util.formatting import is_encodable

#: Stands for the id of a query that has none: no trained part has learned from it.
LIVE_QUERY = "live query"


#: Score spaces with limits: least and greatest score, and both in words.
LIMITS: Mapping[ScoreSpace, tuple[float, float, str]] = {
    "unit": (0.0, 1.0, "0 to 1"),
    "log_prob": (-math.inf, 0.0, "at most 0"),
}
#: The keys of a result that is a mapping, and the attributes of one that is an object.
KEYS = ("id", "score", "text", "metadata")


@dataclass(frozen=True, slots=True)
class QueryHit:
    """One document that a retriever returned.

    Attributes:
        id: The document's id.
        score: The retriever's score, finite; greater is better.
        text: The document's text; only a reranker reads it. None = not handed over.
        metadata: Anything else, which is merged over the sources.
    """

    id: str
    score: float
    text: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_hits(given: object, source: str) -> list[QueryHit]:
    """The list of one source.

    Args:
        given: ``(id, score)``, ``(id, score, text)`` or ``(id, score, text, metadata)`` each; or
            mappings or objects with these names; or ``{id: score}``; or ids alone, best first.
        source: The source's name, for messages.

    Raises:
        DataError: An item is none of these, an id is empty, or a score is no finite number.
    """
    if isinstance(given, Mapping):
        given = list(given.items())
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError(f"list {source!r}: give a list of (id, score), not {type(given).__name__}")
    items = list(given)
    if items and all(isinstance(item, str) for item in items):
        items = [(item, float(len(items) - i)) for i, item in enumerate(items)]
    return [_read_hit(item, source, i) for i, item in enumerate(items, 1)]


def _read_hit(item: object, source: str, number: int) -> QueryHit:
    if type(item) is tuple and len(item) in {2, 3}:  # by far the most frequent, and the fastest
        name, score, text = item if len(item) == 3 else (*item, None)
        is_text = text is None or type(text) is str
        is_score = type(score) is float and math.isfinite(score)
        if type(name) is str and name and is_encodable(name) and is_score and is_text:
            return QueryHit(name, score, text)
    return _read_fields(item, f"list {source!r}, item {number}")


def _read_fields(item: object, where: str) -> QueryHit:
    if isinstance(item, tuple | list):
        if not 2 <= len(item) <= len(KEYS):
            raise DataError(
                f"{where}: {len(item)} fields, and (id, score), (id, score, text) or (id, score, "
                "text, metadata) is needed"
            )
        fields = dict(zip(KEYS, item, strict=False))
    elif isinstance(item, Mapping):
        fields = dict(item)
    else:
        fields = {key: getattr(item, key) for key in KEYS if hasattr(item, key)}
    for key in fields:
        if key not in KEYS:
            hint = did_you_mean(str(key), KEYS)
            raise DataError(f"{where}: unknown key {key!r}{hint} (known: {', '.join(KEYS)})")
    if "id" not in fields or "score" not in fields:
        raise DataError(f"{where}: 'id' and 'score' are needed, given {item!r:.80}")
    text, metadata = fields.get("text"), fields.get("metadata") or {}
    if text is not None and not isinstance(text, str):
        raise DataError(f"{where}: text is text or None, given {text!r:.80}")
    if not isinstance(metadata, Mapping):
        raise DataError(f"{where}: metadata is a mapping or None, given {metadata!r:.80}")
    return QueryHit(
        _read_id(fields["id"], where), _read_score(fields["score"], where), text, metadata
    )


def _read_id(value: object, where: str) -> str:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    with suppress(ValueError):  # a whole number of 5,000 digits
        if is_whole or (isinstance(value, str) and value != "" and is_encodable(value)):
            return str(value)
    raise DataError(f"{where}: an id is text or a whole number, given {_show(value)}")


def _read_score(value: object, where: str) -> float:
    # numpy's numbers are Real, or turn into one.
    number: Any = getattr(value, "item", lambda: value)()
    with suppress(OverflowError):  # a whole number of 400 digits
        if not isinstance(number, bool) and isinstance(number, Real) and math.isfinite(number):
            return float(number)
    raise DataError(f"{where}: a score is a finite number, given {_show(value)}")


def _show(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:
        return "a whole number of more than 4,300 digits"


@dataclass(frozen=True)
class ListRules:
    """The rules by which the lists of each source are read.

    Attributes:
        roles: Roles of each source, by name.
        options: How scores become ranks, by name of a source or of a rerank list.
        ties: The tie rule.
        conditions: When a source is on, by name; one without a condition always is.
    """

    roles: Mapping[str, frozenset[str]]
    options: Mapping[str, ReadOptions]
    ties: Ties = "trec"
    conditions: Mapping[str, Condition] = field(default_factory=dict)

    @property
    def strategies(self) -> dict[str, str]:
        """Source → what it searches by, from its role or its name; only those that say it."""
        names = dict.fromkeys((*self.roles, *SINGLE_STRATEGIES))
        found = {name: {name, *self.roles.get(name, ())} for name in names}
        return {
            name: str(strategy)
            for strategy in SINGLE_STRATEGIES
            for name, words in found.items()
            if strategy in words
        }

    def without_strategies(self, off: Collection[str]) -> tuple[ListRules, dict[str, str]]:
        """The rules under which lists of these strategies are off, and the fields of such a query.

        Args:
            off: The strategies.
        """
        conditions = dict(self.conditions)
        for name, strategy in self.strategies.items():
            if strategy in off:
                conditions[name] = {**conditions.get(name, {}), strategy: ("on",)}
        return replace(self, conditions=conditions), dict.fromkeys(off, "off")

    def explain_off(self, query: Query) -> dict[str, str]:
        """Source that is off for a query → why: ``intent is rules``."""
        return {
            name: Switch(frozenset(), condition).explain_off(query)
            for name, condition in self.conditions.items()
            if not meets_condition(query, condition)
        }

    def merge_rows(self, system: System) -> ListRules:
        """The rules under which a system that collapses by id merges the rows of one id."""
        options = dict(self.options)
        for _, part in system.list_parts():
            if (collapse := part.collapse) is None or collapse.by != "id":
                continue
            for name in part.base_runs:
                given = options.get(name, ReadOptions())
                options[name] = replace(given, collapse=collapse.score, collapse_k=collapse.k)
        return replace(self, options=options)

    def options_of(self, name: str) -> ReadOptions:
        """Return the options of a list; by default a document named twice keeps its best rank."""
        options = self.options.get(name, ReadOptions())
        return options if options.collapse else replace(options, on_duplicate="best_rank")


def align_lists(
    query: Query,
    lists: Mapping[str, Sequence[QueryHit]],
    names: Sequence[str],
    rules: ListRules,
    spaces: Mapping[str, ScoreSpace] | None = None,
) -> AlignedRuns | None:
    """The lists of one query on one set of candidates; None where all are empty.

    Args:
        query: The query.
        lists: By name of the source; one that is off may be absent.
        names: The sources, in the order that ``first_seen`` ties go by.
        rules: How the lists are read.
        spaces: What the scores of each rerank list mean, by its name.
    """
    off = rules.explain_off(query)
    given = {name: lists[name] for name in names if name not in off and lists[name]}
    filled = []
    for name, hits in given.items():
        options = rules.options_of(name)
        run = Run.from_rows(
            name,
            [query.id] * len(hits),
            [hit.id for hit in hits],
            [hit.score for hit in hits],
            ranks=range(1, len(hits) + 1) if options.rank_from == "column" else None,
            roles=rules.roles.get(name, frozenset()),
            read_options=options,
        )
        if len(run.documents):
            filled.append(run)
    if not filled:
        return None
    aligned = align_all_queries(filled, queries={query.id: query}, ties=rules.ties, spaces=spaces)
    aligned = replace(aligned, find_parents=partial(find_parents, lists))
    for name in names:
        if name not in aligned.sources:
            size = len(aligned.documents)
            roles = rules.roles.get(name, frozenset())
            nothing = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
            switch = Switch(frozenset(), rules.conditions[name]) if name in off else None
            aligned = aligned.add_source(name, roles, *nothing, switch)
    return aligned.restrict(names) if rules.ties == "first_seen" else aligned


def add_rerank_list(
    runs: AlignedRuns, name: str, hits: Sequence[QueryHit], rules: ListRules
) -> AlignedRuns:
    """The runs of one query with a rerank list, in place of one of that name.

    Args:
        runs: Of one query.
        name: The rerank list's name.
        hits: Its scores; documents that are no candidates are left out.
        rules: How the list is read.
    """
    ranks: IntArray = np.zeros(len(runs.documents), dtype=np.int64)
    scores: FloatArray = np.full(len(runs.documents), np.nan)
    options = rules.options_of(name)
    row_of = {document: row for row, document in enumerate(candidate_ids(runs))}
    best: dict[int, float] = {}
    for hit in hits if options.rank_from == "column" else sorted(hits, key=lambda h: -h.score):
        if hit.id in row_of:
            best.setdefault(row_of[hit.id], hit.score)
    if best:
        rows = np.array(list(best))
        scores[rows] = list(best.values())
        # As a file's rows in this order get their ranks.
        ties = None if options.source_ties == "file" else ~runs.documents[rows]
        ranks[rows] = (
            np.arange(1, len(rows) + 1)
            if options.rank_from == "column"
            else positions(scores[rows], np.array([0, len(rows)]), tie_order=ties)
        )
    kept = [i for i, known in enumerate(runs.rerankers) if known != name]
    return replace(
        runs,
        rerankers=(*(runs.rerankers[i] for i in kept), name),
        rerank=np.vstack([runs.rerank[kept], scores]),
        rerank_ranks=np.vstack([runs.rerank_ranks[kept], ranks]),
    )


def candidate_ids(runs: AlignedRuns) -> list[str]:
    """(N,): the id of each candidate."""
    known = list(runs.vocabulary)
    return [known[code] for code in runs.documents.tolist()]


def chunk_ids(runs: AlignedRuns) -> list[str]:
    """(N,): the id of the chunk that stands for each candidate; its own if nothing is collapsed."""
    return candidate_ids(runs if runs.chunks is None else replace(runs, documents=runs.chunks))


def find_parents(
    lists: Mapping[str, Sequence[QueryHit]], field: str | None, column: str | None
) -> dict[str, str]:
    """Find the parents of chunks in the metadata of the hits, under the name of a field or column.

    Raises:
        DataError: A chunk has two parents.
    """
    found: dict[str, str] = {}
    for name, hits in lists.items():
        for hit in hits:
            for key in {field, column} - {None}:
                parent = hit.metadata.get(str(key))
                if parent is not None and found.setdefault(hit.id, str(parent)) != str(parent):
                    raise DataError(
                        f"list {name!r}: chunk {hit.id!r} has the parents {found[hit.id]!r} and "
                        f"{str(parent)!r}: give one"
                    )
    return found


log = logging.getLogger("fusion_bench.serving.live")

#: Takes the query's text and returns its list; may be a coroutine function.
Retriever: TypeAlias = Callable[[str], Any]
#: A list in a form that ``read_hits`` takes, or a retriever.
Source: TypeAlias = Iterable[Any] | Mapping[str, float] | Retriever


async def gather_lists(
    sources: Mapping[str, Source],
    query: str,
    *,
    strict: bool,
    spaces: Mapping[str, ScoreSpace],
) -> tuple[dict[str, list[QueryHit]], dict[str, str]]:
    """Ask all retrievers at once, and read what was handed over.

    Args:
        sources: By name.
        query: The query's text.
        strict: Whether a retriever that fails is an error; else its list is empty.
        spaces: Score space of each rerank list, which its scores have to lie in.

    Returns:
        The lists by name, empty where a retriever failed; retrievers that failed, and how.

    Raises:
        DataError: A list that was handed over breaks a rule, or a retriever failed.
    """
    asked = {name: source for name, source in sources.items() if callable(source)}
    hits = {name: _read_list(sources[name], name, spaces) for name in sources if name not in asked}
    calls = (
        await_contained(_ask_retriever(name, source, query, spaces))
        for name, source in asked.items()
    )
    answers = await asyncio.gather(*calls, return_exceptions=True)
    failures = {}
    for name, answer in zip(asked, answers, strict=True):
        if isinstance(answer, asyncio.CancelledError | KeyboardInterrupt):
            raise answer
        if isinstance(answer, BaseException):
            problem = f"{type(answer).__name__}: {answer}"
            if strict:
                raise DataError(f"retriever {name!r} failed: {problem}") from answer
            log.warning("retriever %r failed: %s", name, problem)
            failures[name] = problem
            hits[name] = []
        else:
            hits[name] = answer
    return {name: hits[name] for name in sources}, failures


def _read_list(given: object, name: str, spaces: Mapping[str, ScoreSpace]) -> list[QueryHit]:
    """Read the list of a source, and check its scores if it has a score space."""
    hits, space = read_hits(given, name), spaces.get(name)
    if space is not None and space in LIMITS:
        low, high, allowed = LIMITS[space]
        for number, hit in enumerate(hits, 1):
            if not low <= hit.score <= high:
                raise DataError(
                    f"list {name!r}, item {number}: a score of the score space {space!r} is "
                    f"{allowed}, given {hit.score:g}: declare what the scores mean "
                    f"({', '.join(get_args(ScoreSpace))})"
                )
    return hits


async def _ask_retriever(
    name: str, retriever: Retriever, query: str, spaces: Mapping[str, ScoreSpace]
) -> list[QueryHit]:
    answer = await call_function(retriever, query)
    return _read_list(answer, name, spaces)
