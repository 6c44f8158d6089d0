"""The final list of one query, ranked as ``eval`` ranks, with CRAG's verdict on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.errors import ConfigError, FailureKind
from fusion_bench.evaluation.crag import ABSOLUTE, CragThresholds, CragVerdict, judge_list
from fusion_bench.experiment.settings import CragRule
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import RerankBlend
from fusion_bench.methods.fuse.weighted_score import CollapsedList
from fusion_bench.ranking import system_ranking
from fusion_bench.ranking.plain_systems import plain_systems
from fusion_bench.schema.record_fields import SINGLE_STRATEGIES, ChunkId, SearchResultType
from fusion_bench.schema.search_records import (
    CRAGScore,
    RelevanceScore,
    SearchQuery,
    SearchResult,
    SearchResultContent,
    SearchResultItem,
    SearchResultSources,
    SearchStrategyMetrics,
    StrategyMetric,
    normalize_scores,
    select_results,
)
from fusion_bench.serving.live.query_lists import QueryHit, candidate_ids, chunk_ids


@dataclass(frozen=True, slots=True)
class SourceHit:
    """The rank and score of a document in one list.

    Attributes:
        list: Name of the source.
        rank: Its rank there, from 1.
        score: Its score there.
        weight: The source's weight in the fusion, for this query.
    """

    list: str
    rank: int
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class LiveChunk:
    """One chunk of a document.

    Attributes:
        id: Its id.
        ranks: List → its rank there, from 1; only lists that returned it.
        text: Its text, of the first list that has one; None = no list has.
        metadata: Of all lists, as for a document.
    """

    id: str
    ranks: Mapping[str, int]
    text: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDocument(QueryHit):
    """One document of the final list.

    Attributes:
        score: Its final score: blended, or the fused one where it was not reranked.
        fused_score: Its fused score.
        rerank_score: Its rerank score on the unit scale; None = it was not scored.
        sources: The lists that returned it and take part, in the system's order; of a collapsed
            document, its best chunk in each.
        text: Its text, of the first list that has one; None = no list has. A collapsed document has
            the text and the metadata of its best chunk.
        metadata: Of all lists in the order that the caller gave them; later values win.
        parent: The document of a chunk, where a system keeps some of each document; else None.
        chunks: The chunks of a collapsed document that some list returned, the best one first.
    """

    fused_score: float
    rerank_score: float | None
    sources: tuple[SourceHit, ...]
    parent: str | None = None
    chunks: tuple[LiveChunk, ...] = ()

    @property
    def best_chunk(self) -> str:
        """The id of its best chunk, which a reranker reads; its own where it is not collapsed."""
        return self.chunks[0].id if self.chunks else self.id


@dataclass(frozen=True)
class LiveResult:
    """The answer to one query.

    Attributes:
        documents: Best first.
        answered: False = the system's ``abstain`` says that it has no answer; the documents stay.
        signal: The signal of ``abstain``; None = the system always answers.
        signal_value: Its value; None = the query has none, and is not answered.
        provider: ``provider/model`` that scored; the name of the rerank list whose scores were
            handed over; or ``fused order``.
        degraded: Why the first provider did not score, or which source failed; empty if all went
            well.
        failures: ``provider/model`` of each provider that failed, and how, in order.
        source_failures: Source whose retriever failed → what happened.
        skipped: Whether there were too few candidates to rerank.
        switched_off: Source that was off for this query → why.
        query_type: The type whose settings applied; None = the system has none by type.
        intent: The intent whose settings applied; None = the system has none by intent.
        rerank_ms: Milliseconds of the reranking.
        total_ms: Milliseconds of the whole query, with what had passed before.
        crag: CRAG's verdict on the list, where the pipeline has ``crag`` and the scores of the
            rerank list mean the same for every query; None where nothing was reranked, or no score
            could be read.
        crag_unknown: Whether the pipeline has ``crag`` and CRAG cannot tell.
        v2_enabled: What ``RAG_FUSION_V2_ENABLED`` said when the pipeline was made; false =
            ``rrf_v2`` and ``position_aware`` run as ``rrf`` and ``replace``.
        returned: List → how many documents it returned; without those that were off.
        strategies: List → what it searches by: ``keyword``, ``semantic`` or ``graph``, by its name
            or its role; a list without one is not in it.
    """

    documents: tuple[LiveDocument, ...]
    provider: str
    answered: bool = True
    signal: str | None = None
    signal_value: float | None = None
    degraded: str = ""
    failures: tuple[tuple[str, FailureKind], ...] = ()
    source_failures: Mapping[str, str] = field(default_factory=dict)
    skipped: bool = False
    switched_off: Mapping[str, str] = field(default_factory=dict)
    query_type: str | None = None
    intent: str | None = None
    rerank_ms: float = 0.0
    total_ms: float = 0.0
    crag: CragVerdict | None = None
    crag_unknown: bool = False
    v2_enabled: bool = True
    returned: Mapping[str, int] = field(default_factory=dict)
    strategies: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranked(self) -> tuple[tuple[str, float], ...]:
        """Document and final score, best first."""
        return tuple((document.id, document.score) for document in self.documents)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, for JSON; metadata stay as they were handed over.

        A document has ``parent`` or ``chunks`` only where the system collapses.
        """
        data = asdict(self)
        for document in data["documents"]:
            for key in ("parent", "chunks"):
                if not document[key]:
                    del document[key]
        return data

    def to_search_result(self, query: SearchQuery) -> SearchResult:
        """The record of this answer, whose JSON line ``dataset from-logs`` reads.

        Scores outside 0 to 1 are brought there by min-max over the documents, which keeps their
        order. Of the options of the query, ``offset``, ``limit``, ``rerank_enabled`` and
        ``crag_enabled`` apply, and the filter ``min_relevance``.

        Args:
            query: What was searched for.

        Raises:
            ConfigError: A list searches by no strategy.
        """
        for name in self.returned:
            if name not in self.strategies:
                raise ConfigError(
                    f"list {name!r} has none of the roles {', '.join(SINGLE_STRATEGIES)}: give the "
                    "pipeline roles={" + f"{name!r}: [...]" + "}"
                )
        options, verdict = query.options, self.crag
        lists = {str(name): self._list_scores(name) for name in SINGLE_STRATEGIES}
        columns = zip(
            self.documents,
            _to_unit([document.score for document in self.documents]),
            _to_unit([document.fused_score for document in self.documents]),
            strict=True,
        )
        crag = None
        if options.crag_enabled and verdict is not None:
            crag = CRAGScore(**asdict(verdict))
        items = [
            SearchResultItem(
                id=document.id,
                type=SearchResultType.CHUNK,
                score=score,
                relevance=RelevanceScore(
                    combined=combined,
                    **{name: scores.get(document.id, 0.0) for name, scores in lists.items()},
                    rerank=document.rerank_score if options.rerank_enabled else None,
                    crag=crag,
                ),
                content=SearchResultContent(text=document.text or ""),
                highlights=(),
                sources=SearchResultSources(
                    chunk_id=ChunkId(document.best_chunk),
                    entity_ids=(),
                    relation_ids=(),
                ),
            )
            for document, score, combined in columns
        ]
        least = query.filters.min_relevance
        return SearchResult(
            query=query,
            results=tuple(select_results(items, least, options)),
            total_count=sum(item.score >= least for item in items),
            processing_time=self.total_ms,
            strategies=SearchStrategyMetrics(
                **{name: self._describe_strategy(name, scores) for name, scores in lists.items()}
            ),
        )

    def _list_scores(self, strategy: str) -> dict[str, float]:
        """Document → its score in the lists of a strategy, above 0 to 1."""
        found: dict[str, float] = {}
        for document in self.documents:
            for hit in document.sources:
                if self.strategies.get(hit.list) == strategy:
                    found[document.id] = max(hit.score, found.get(document.id, -math.inf))
        if all(0 < score <= 1 for score in found.values()):
            return found
        unit = (max(score, RETURNED) for score in _to_unit([*found.values()], is_kept=False))
        return dict(zip(found, unit, strict=True))

    def _describe_strategy(self, strategy: str, scores: Mapping[str, float]) -> StrategyMetric:
        counts = [n for name, n in self.returned.items() if self.strategies[name] == strategy]
        return StrategyMetric(
            enabled=bool(counts),
            result_count=sum(counts),
            processing_time=0,
            top_score=max(scores.values(), default=0.0),
        )


#: Stands for the least score of a list, since 0 means that the list did not return the document.
RETURNED: Final = 1e-9


def _to_unit(scores: Sequence[float], *, is_kept: bool = True) -> Sequence[float]:
    """The scores if they lie from 0 to 1 and are to be kept, else their min-max."""
    if is_kept and all(0 <= score <= 1 for score in scores):
        return scores
    return normalize_scores(scores)


def rank_documents(
    system: System,
    runs: AlignedRuns,
    lists: Mapping[str, Sequence[QueryHit]],
) -> tuple[LiveDocument, ...]:
    """The documents that a system returns for one query, best first.

    Args:
        system: The system.
        runs: Of the query, with every rerank list that the system reads.
        lists: What was handed over, by name, in the caller's order.

    Raises:
        AlignmentError: A candidate has no rerank score, under ``missing: error``.
        ConfigError: The system does not fit the lists.
    """
    [(_, plain, part)] = plain_systems(system, runs)
    ranking = system_ranking.rank_candidates(plain, part)
    view = ranking.runs
    fused = system_ranking.fused_list(view, plain.fusion)
    columns = (ranking.scores, fused.scores, _rerank_scores(plain, ranking))
    scores, fused_scores, rerank_scores = (column.tolist() for column in columns)
    ids, best, extras = candidate_ids(view), chunk_ids(view), _merge_extras(lists)
    hits = _source_hits(plain, view)
    collapse = system.collapse
    if collapse is not None and collapse.by == "id":  # rows were merged as they were read
        collapse, best = None, ids
    parents: dict[str, str] = {}  # of each chunk
    if collapse is not None:
        known, codes = [*view.vocabulary], view.parents[collapse.rule].tolist()
        parents = {name: known[code] for name, code in zip(known, codes, strict=True) if code >= 0}
    chunks = {} if collapse is None else _list_chunks(runs, parents, extras)
    if isinstance(plain.fusion, CollapsedList) and system.stages:  # the list is one of chunks
        stage = system.stages[system.runs[0]]
        of_chunk = _describe_chunks(stage, runs)
        hits = _best_hits(stage.runs, ids, {} if view.chunks is None else chunks, of_chunk)
        rerank_scores = [
            of_chunk[chunk].rerank_score if isnan(score) else score
            for chunk, score in zip(best, rerank_scores, strict=True)
        ]
    rows = np.flatnonzero(ranking.positions > 0)
    return tuple(
        LiveDocument(
            id=ids[row],
            score=scores[row],
            fused_score=fused_scores[row],
            rerank_score=None if isnan(rerank_scores[row]) else rerank_scores[row],
            sources=hits(row),
            text=extras[best[row]][0],
            metadata=extras[best[row]][1],
            parent=parents.get(ids[row], ids[row]) if parents and view.chunks is None else None,
            chunks=()
            if collapse is None or view.chunks is None
            else tuple(sorted(chunks[ids[row]], key=lambda each: each.id != best[row])),
        )
        for row in rows[np.argsort(ranking.positions[rows])].tolist()
    )


@dataclass(frozen=True, slots=True)
class _ChunkScores:
    """What a system found of a chunk before it collapsed: its lists and its rerank score."""

    sources: tuple[SourceHit, ...]
    rerank_score: float


def _describe_chunks(system: System, runs: AlignedRuns) -> dict[str, _ChunkScores]:
    """Chunk → its scores, in the list that a system collapses."""
    [(_, plain, part)] = plain_systems(system, runs)
    ranking = system_ranking.rank_candidates(plain, part)
    hits = _source_hits(plain, ranking.runs)
    scores = _rerank_scores(plain, ranking).tolist()
    names = candidate_ids(ranking.runs)
    return {name: _ChunkScores(hits(row), scores[row]) for row, name in enumerate(names)}


def _best_hits(
    names: Sequence[str],
    ids: Sequence[str],
    chunks: Mapping[str, Sequence[LiveChunk]],
    of_chunk: Mapping[str, _ChunkScores],
) -> Callable[[int], tuple[SourceHit, ...]]:
    """Row of a document → the best of its chunks in each list; of a chunk → its own lists."""

    def list_hits(row: int) -> tuple[SourceHit, ...]:
        members = [chunk.id for chunk in chunks[ids[row]]] if chunks else [ids[row]]
        hits = [hit for member in members for hit in of_chunk[member].sources]
        best = {hit.list: hit for hit in sorted(hits, key=lambda hit: -hit.rank)}
        return tuple(best[name] for name in names if name in best)

    return list_hits


def _list_chunks(
    runs: AlignedRuns,
    parents: Mapping[str, str],
    extras: Mapping[str, tuple[str | None, dict[str, Any]]],
) -> dict[str, list[LiveChunk]]:
    """Document → its chunks, by their best ranks."""
    found: dict[str, list[LiveChunk]] = {}
    names, ranks = candidate_ids(runs), runs.ranks.T.tolist()
    chunks = [
        LiveChunk(
            name,
            {source: rank for source, rank in zip(runs.sources, row, strict=True) if rank},
            *extras[name],
        )
        for name, row in zip(names, ranks, strict=True)
        if any(row)
    ]
    for chunk in sorted(chunks, key=lambda each: min(each.ranks.values())):
        found.setdefault(parents.get(chunk.id, chunk.id), []).append(chunk)
    return found


def _rerank_scores(system: System, ranking: system_ranking.SystemRanking) -> FloatArray:
    """(N,): rerank scores on the unit scale; NaN = not scored."""
    runs, blend = ranking.runs, system.blend
    if not isinstance(blend, RerankBlend):
        return np.full(len(runs.documents), np.nan)
    with system_ranking.name_system_in_errors(system):
        fused = system_ranking.fused_list(runs, system.fusion)
        _, unit, _ = blend.score_candidates(runs, fused, runs.spaces)
    raw = runs.rerank[runs.rerankers.index(blend.reranker)]
    return np.where(np.isnan(raw), np.nan, unit)


def _source_hits(system: System, runs: AlignedRuns) -> Callable[[int], tuple[SourceHit, ...]]:
    """Row of a candidate → where it came from."""
    weights = system.fusion.source_weights(runs.sources, runs.roles).tolist()
    ranks, scores = runs.ranks.T.tolist(), runs.scores.T.tolist()

    def list_hits(row: int) -> tuple[SourceHit, ...]:
        columns = zip(runs.sources, ranks[row], scores[row], weights, strict=True)
        return tuple(SourceHit(*column) for column in columns if column[1] > 0)

    return list_hits


def _merge_extras(
    lists: Mapping[str, Sequence[QueryHit]],
) -> dict[str, tuple[str | None, dict[str, Any]]]:
    """Document → its first text and its merged metadata, in which later lists win."""
    merged: dict[str, tuple[str | None, dict[str, Any]]] = {}
    for hits in lists.values():
        for hit in hits:
            text, metadata = merged.get(hit.id, (None, {}))
            merged[hit.id] = hit.text if text is None else text, {**metadata, **hit.metadata}
    return merged


def judge_documents(
    documents: Sequence[LiveDocument],
    query: Query,
    system: System,
    spaces: Mapping[str, ScoreSpace],
    rule: CragRule | None,
    unread: Collection[str] = (),
) -> CragVerdict | None:
    """The verdict that ``eval`` would give the list.

    Args:
        documents: Best first.
        query: Its field ``refined_query`` is what to search instead.
        system: The plain system that ranked them.
        spaces: Score space of each rerank list.
        rule: The thresholds; None = not asked for.
        unread: Ids of documents whose score could not be read, which say nothing.

    Returns:
        None where it was not asked for, where nothing was reranked or no score could be read, or
        where the scores of the rerank list mean something within a query only.
    """
    scores = [
        math.nan if each.rerank_score is None or each.best_chunk in unread else each.rerank_score
        for each in documents
    ]
    space = spaces.get(system.blend.reranker_name or "")
    if rule is None or space not in ABSOLUTE or all(map(math.isnan, scores)):
        return None
    return judge_list(
        scores,
        CragThresholds(rule.upper, rule.lower),
        top=rule.top,
        refined_query=query.fields.get("refined_query"),
    )
