"""The terms of a query's scores as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fusion_bench.evaluation.explanation import (
    BlendTrace,
    Explanation,
    ScoreTerm,
    ScoreTrace,
    explain_order,
)
from fusion_bench.io.json_objects import read_titles
from fusion_bench.report.data_warnings import warning_sections
from fusion_bench.report.page import Column, Finding, Page, Section, Table, make_columns, make_table
from fusion_bench.util.formatting import pluralize


def explain_documents(
    explanation: Explanation, document: str | None, *, against: str | None = None, top: int = 10
) -> tuple[list[dict[str, Any]], Page]:
    """What is said of one document of a query, or of its top documents: records, and their page.

    Args:
        explanation: Of the query.
        document: Id of the document; None = the top documents.
        against: The document to compare with; None = the one ranked next above.
        top: Number of top documents.

    Raises:
        ConfigError: No source returned the document.
    """
    traces = select_traces(explanation, document, against=against, top=top)
    titles = read_titles(explanation.documents, {trace.document for trace in traces})
    records = [
        {**trace_record(explanation, trace), "title": titles.get(trace.document, "")}
        for trace in traces
    ]
    with_terms = document is not None
    page = build_explanation_page(explanation, traces, with_terms=with_terms, titles=titles)
    return records, page


def select_traces(
    explanation: Explanation, document: str | None, *, against: str | None = None, top: int = 10
) -> list[ScoreTrace]:
    """The top of the list, or a document and the one to compare it with, in list order.

    Args:
        explanation: Of the query.
        document: Id of a document; None = the top of the list.
        against: Id of another document; None = the one ranked next above.
        top: Length of the top of the list.

    Raises:
        ConfigError: No source returned the document.
    """
    traces = explanation.traces
    if document is None:
        return [trace for trace in traces if trace.rank is not None][:top]
    names = (document,) if against is None else (document, against)
    selected = [explanation.require_trace(name) for name in names]
    position = traces.index(selected[0])
    if against is None and position:
        selected.append(traces[position - 1])
    return sorted(selected, key=traces.index)


def trace_record(explanation: Explanation, trace: ScoreTrace) -> dict[str, Any]:
    """A document's score by term as plain data, in each stage too.

    Args:
        explanation: Of the query.
        trace: Of the document.
    """
    record = {
        **asdict(trace),
        "contributions": trace.contributions,
        "trial": explanation.trial,
        "data_warnings": [each.model_dump() for each in explanation.data_warnings],
        "switched_off": dict(explanation.switched_off),
    }
    if explanation.decision is not None:
        record["abstain"] = asdict(explanation.decision)
    if not trace.chunks:
        del record["chunks"]
    stages = {}
    for stage in explanation.stages:
        inner = stage.find_trace(trace.chunk)
        stages[stage.system] = None if inner is None else trace_record(stage, inner)
    return {**record, "stages": stages} if stages else record


def build_explanation_page(
    explanation: Explanation,
    traces: Sequence[ScoreTrace],
    *,
    with_terms: bool,
    titles: Mapping[str, str] | None = None,
) -> Page:
    """Why documents of one query have their scores and their order.

    Args:
        explanation: The query.
        traces: The documents, in the order of the list.
        with_terms: Whether to show every term of each document, or one row a document.
        titles: The titles of documents, where they are known.
    """
    count = pluralize(len(explanation.traces), "candidate")
    title = f"{explanation.system} on query {explanation.query}: {count}"
    if explanation.query_type:
        title += f", weights of type {explanation.query_type}"
    if explanation.intent:
        title += f", numbers of intent {explanation.intent}"
    titles = titles or {}
    tables = _score_tables(explanation, traces, titles, with_terms=with_terms)
    texts = [
        f"{above.document} ranks above {below.document}: "
        f"{explain_order(above, below, explanation.ties)}"
        for above, below in pairwise(traces)
    ]
    reasons = Section("Order", findings=tuple(Finding(text, key="order") for text in texts))
    text = f"“{explanation.query_text}”" if explanation.query_text else ""
    repeat = [] if explanation.trial is None else [f"This is {explanation.trial}."]
    findings = [Finding(line, key="trial") for line in repeat]
    if explanation.decision is not None:
        findings.append(Finding(f"{explanation.decision}", key="abstain"))
    findings += [Finding(line, key="switched off") for line in _list_switched_off(explanation)]
    section = Section(text=text, findings=tuple(findings), parts=tables)
    first = warning_sections(explanation.data_warnings)
    sections = [section, *([reasons] if texts else []), *_chunk_sections(explanation, traces)]
    return Page(title, (*first, *sections))


#: What the score of a document is in a list, by the rule.
CHUNK_SCORES: Final = {
    "max": "the greatest score of its chunks",
    "sum": "the sum of the scores of its chunks",
    "first": "the score of its best chunk",
    "rrf": "the sum of 1/({k:g} + rank) over its chunks",
}


def _chunk_sections(explanation: Explanation, traces: Sequence[ScoreTrace]) -> Iterator[Section]:
    """Which chunk stands for each document, and why; nothing where none are collapsed."""
    collapse = explanation.collapse
    if collapse is None or collapse.by == "id":
        return
    texts = []
    for trace in traces:
        best = next(chunk for chunk in trace.chunks if chunk.id == trace.chunk)
        places = " and ".join(f"rank {rank} in {name}" for name, rank in best.ranks.items())
        others = [chunk.id for chunk in trace.chunks if chunk is not best]
        more = f"; further chunks: {', '.join(others)}" if others else ""
        stands = "is kept" if collapse.keep else "stands for it"
        texts.append(f"{trace.document}: chunk {best.id} {stands}, {places}{more}")
    if collapse.score is None:
        rule = f"Each list keeps the best {collapse.keep} of the chunks of a document."
    else:
        score = CHUNK_SCORES[collapse.score].format(k=collapse.k)
        rule = f"The score of a document in a list is {score}. The best rank decides its chunk."
    findings = tuple(Finding(text, key="chunks") for text in texts)
    yield Section("Chunks", text=rule, findings=findings)


def _list_switched_off(explanation: Explanation) -> Iterator[str]:
    """The sources that are off, then those of each stage."""
    for source, reason in explanation.switched_off.items():
        yield f"source {source} is off: {reason}"
    for stage in explanation.stages:
        yield from _list_switched_off(stage)


def _score_tables(
    explanation: Explanation,
    traces: Sequence[ScoreTrace],
    titles: Mapping[str, str],
    *,
    with_terms: bool,
    stage: str = "",
) -> tuple[Table, ...]:
    """The scores of these documents, then those in each stage, and in its stages."""
    if with_terms:
        tables = [_terms_table(trace, explanation.top_k, titles) for trace in traces]
    else:
        tables = [_ranking_table(traces, titles)] if traces else []
    if stage:
        tables = [replace(table, title=f"stage {stage}: {table.title}") for table in tables]
    for inner in explanation.stages:
        known = [inner.find_trace(trace.chunk) for trace in traces]
        inner_traces = [trace for trace in known if trace is not None]
        name = f"{stage} / {inner.system}" if stage else inner.system
        tables += _score_tables(inner, inner_traces, titles, with_terms=with_terms, stage=name)
    return tuple(tables)


def _ranking_table(traces: Sequence[ScoreTrace], titles: Mapping[str, str]) -> Table:
    labels = {label: label for trace in traces for label in trace.fused_contributions}
    blended = [trace for trace in traces if trace.blend is not None]
    blend_labels = {label: label for trace in blended for label in trace.contributions}
    columns: list[Column[ScoreTrace]] = [
        Column("document", lambda trace: trace.document, is_text=True),
        Column("rank", lambda trace: str(trace.rank)),
        Column("grade", lambda trace: "–" if trace.grade is None else str(trace.grade)),
        Column("score", lambda trace: f"{trace.score:.4g}"),
        *make_columns(labels, lambda key, trace: f"{trace.fused_contributions.get(key, 0):.4g}"),
        Column("fused score", lambda trace: f"{trace.fused_score:.4g}"),
        Column("fused rank", lambda trace: str(trace.fused_rank)),
        *make_columns(blend_labels, _format_blended),
    ]
    if titles:
        named = Column[ScoreTrace]("title", lambda trace: titles.get(trace.document, ""))
        columns.append(replace(named, is_text=True, is_optional=True))
    notes = ("grade –: not judged.",) if any(trace.grade is None for trace in traces) else ()
    return make_table("Ranking", columns, traces, notes=notes, is_transposable=True)


def _format_blended(label: str, trace: ScoreTrace) -> str:
    parts = {} if trace.blend is None else trace.contributions
    return f"{parts[label]:.4g}" if label in parts else "–"


def _terms_table(trace: ScoreTrace, top_k: int | None, titles: Mapping[str, str]) -> Table:
    grade = "unjudged" if trace.grade is None else f"grade {trace.grade}"
    rank = "not returned" if trace.rank_before_cut is None else f"rank {trace.rank_before_cut}"
    cut = f", below top_k {top_k}" if trace.is_cut else ""
    tier = "" if trace.tier == "ranked" else f" ({trace.tier})"
    named = f" “{titles[trace.document]}”" if trace.document in titles else ""
    title = f"{trace.document}{named}: {rank}{cut}{tier}, score {trace.score:.4g}, {grade}"
    rows = [_describe_term(term, trace.divisor) for term in trace.terms]
    if trace.ceiling is not None:
        rows.append(TermRow("limit", trace.ceiling))
    rows.append(TermRow("= fused score", trace.fused_score, str(trace.fused_rank)))
    if trace.blend is not None:
        rows += _blend_rows(trace, trace.blend)
    return make_table(title, TERM_COLUMNS, rows)


class TermRow(NamedTuple):
    """A term of a score, or a sum of terms."""

    name: str
    value: float
    rank: str = ""
    score: str = ""
    weight: str = ""
    details: str = ""


TERM_COLUMNS: tuple[Column[TermRow], ...] = (
    Column("term", lambda row: row.name, is_text=True),
    Column("contribution", lambda row: f"{row.value:+.4g}"),
    Column("rank", lambda row: row.rank),
    Column("source score", lambda row: row.score, is_optional=True),
    Column("weight", lambda row: row.weight),
    Column("details", lambda row: row.details, is_text=True),
)


def _describe_term(term: ScoreTerm, divisor: float) -> TermRow:
    value = term.value / divisor
    if term.source is None:
        return TermRow(term.name, value)
    weight = f"{term.weight:g}"
    if term.rank is None:
        return TermRow(term.name, value, "–", "–", weight, f"not retrieved by {term.source}")
    roles = ", ".join(term.roles)
    return TermRow(term.name, value, str(term.rank), f"{term.score:.4g}", weight, roles)


def _blend_rows(trace: ScoreTrace, blend: BlendTrace) -> Iterator[TermRow]:
    values, rerank, details = trace.contributions, f"rerank {blend.reranker}", blend.rerank_formula
    if blend.retrieval is not None:
        product = f"{blend.retrieval_weight:.4g} × {blend.retrieval:.4g}"
        text = f"{product}; {blend.retrieval_formula}"
        yield TermRow("retrieval", values["retrieval"], details=text)
        details = f"{blend.rerank_weight:.4g} × {blend.rerank:.4g}; {details}"
    yield TermRow(rerank, values[rerank], details=details)
    yield TermRow("= score", trace.score)
