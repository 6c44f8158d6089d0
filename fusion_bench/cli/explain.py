"""Show every term of a document's score, and why one stands above another."""

from __future__ import annotations

import json as encoder
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fusion_bench.cli._base import (
    DEFAULT,
    DatasetFolders,
    JsonFlag,
    command_app,
    folders_for,
    format_examples,
)
from fusion_bench.cli._console import echo, echo_table
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fusion_bench.explain.score_trace import BlendTrace, Explanation, ScoreTrace

__all__ = ["command", "explain"]


command = command_app()


@command.command(
    epilog=format_examples(
        "fusion-bench explain q17 --experiment experiments/mine.yaml",
        "fusion-bench explain q17 doc42 --experiment experiments/mine.yaml --system rrf-v2",
        "fusion-bench explain q17 doc42 --experiment experiments/mine.yaml --against doc7 --json",
    ),
)
def explain(
    query: Annotated[str, typer.Argument(help="Id of a judged query.", metavar="QUERY")],
    document: Annotated[
        str | None,
        typer.Argument(help="Id of a document. Default: the top of the list.", metavar="DOCUMENT"),
    ] = None,
    experiment: Annotated[
        Path, typer.Option(help="The experiment's YAML file.", metavar="FILE")
    ] = DEFAULT,
    system: Annotated[
        str | None,
        typer.Option(help="Name of a system. Default: the gated one, or the baseline."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Which dataset, where there are several.", metavar="NAME")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Another document. Default: the one that stands next above.", metavar="DOCUMENT"
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="How much of the list to show.", min=1)] = 10,
    datasets: DatasetFolders = None,
    json: JsonFlag = False,
) -> None:
    """Show every term of a document's score, and why one stands above another."""
    from fusion_bench.explain.explain_query import explain_query

    if experiment == DEFAULT and not DEFAULT.exists():
        raise typer.BadParameter(f"there is no {DEFAULT}: name a file", param_hint="--experiment")
    found = explain_query(
        experiment,
        query,
        system=system,
        dataset=dataset,
        folders=folders_for(datasets, experiment),
    )
    shown = _chosen(found, document, against, top)
    if json:
        typer.echo(encoder.dumps([_plain(trace) for trace in shown]))
        return
    head = f"{found.system} on query {found.query}: {pluralize(len(found.traces), 'candidate')}"
    echo(head + (f", weights of type {found.query_type}" if found.query_type else ""))
    if document is None:
        _list(shown)
    else:
        for trace in shown:
            _print(trace, found.top_k)
    _reasons(shown, found.ties)


def _chosen(
    found: Explanation, document: str | None, against: str | None, top: int
) -> Sequence[ScoreTrace]:
    """What is shown: the top of the list, or a document and the one it is held against."""
    from fusion_bench.errors import ConfigError

    if document is None:
        if against is not None:
            raise typer.BadParameter("needs a DOCUMENT to hold against", param_hint="--against")
        return [trace for trace in found.traces if trace.rank is not None][:top]
    wanted = [document] if against is None else [document, against]
    traces = []
    for name in wanted:
        trace = found.find_trace(name)
        if trace is None:
            raise ConfigError(
                f"no source in use returned document {name!r} for query {found.query!r} "
                f"({pluralize(len(found.traces), 'candidate')})"
            )
        traces.append(trace)
    place = found.traces.index(traces[0])
    if against is None and place:
        traces.append(found.traces[place - 1])
    return sorted(traces, key=found.traces.index)


def _plain(trace: ScoreTrace) -> dict[str, object]:
    return asdict(trace) | {"contributions": trace.contributions}


def _reasons(shown: Sequence[ScoreTrace], ties: str) -> None:
    from fusion_bench.explain.explanation import explain_order

    for above, below in pairwise(shown):
        reason = explain_order(above, below, ties)
        echo(f"{above.document} stands above {below.document}: {reason}")


def _list(shown: Sequence[ScoreTrace]) -> None:
    labels = dict.fromkeys(label for trace in shown for label in trace.fused_contributions)
    blends = dict.fromkeys(label for trace in shown if trace.blend for label in trace.contributions)
    headings = ("#", "document", "grade", "score", *labels, "fused", *blends)
    echo_table(headings, [_row(trace, labels, blends) for trace in shown])


def _row(trace: ScoreTrace, labels: Iterable[str], blends: Iterable[str]) -> list[str]:
    fused = trace.fused_contributions
    mixed = trace.contributions if trace.blend else {}
    return [
        str(trace.rank),
        trace.document,
        "–" if trace.grade is None else str(trace.grade),
        f"{trace.score:.6g}",
        *(f"{fused.get(label, 0):.6g}" for label in labels),
        f"{trace.fused_score:.6g} (#{trace.fused_rank})",
        *(f"{mixed[label]:.6g}" if label in mixed else "–" for label in blends),
    ]


def _print(trace: ScoreTrace, top_k: int | None) -> None:
    grade = "unjudged" if trace.grade is None else f"grade {trace.grade}"
    echo(f"{trace.document}: {_place(trace, top_k)}, score {trace.score:.6g}, {grade}")
    for term in trace.terms:
        echo(f"  {_words(term.name, term.value / trace.divisor)}{_where(term)}")
    if trace.ceiling is not None:
        echo(f"  cut at {trace.ceiling:g}")
    echo(f"  {_words('= fused', trace.fused_score)}  rank {trace.fused_rank}")
    if trace.blend is not None:
        _print_blend(trace, trace.blend)


def _place(trace: ScoreTrace, top_k: int | None) -> str:
    """Where it stands; which part of the list that is, unless it is the usual one."""
    place = "not returned" if trace.rank_before_cut is None else f"at {trace.rank_before_cut}"
    if trace.is_cut:
        place += f", below top_k {top_k}"
    return place if trace.tier == "ranked" else f"{place} ({trace.tier})"


def _print_blend(trace: ScoreTrace, mixed: BlendTrace) -> None:
    values, rerank = trace.contributions, f"rerank {mixed.reranker}"
    if mixed.retrieval is None:
        echo(f"  {_words(rerank, values[rerank])}  {mixed.rerank_formula}")
    else:
        product = f"{mixed.retrieval_weight:.6g} × {mixed.retrieval:.6g}"
        echo(f"  {_words('retrieval', values['retrieval'])}  {product}  {mixed.retrieval_formula}")
        product = f"{mixed.rerank_weight:.6g} × {mixed.rerank:.6g}"
        echo(f"  {_words(rerank, values[rerank])}  {product}  {mixed.rerank_formula}")
    echo(f"  {_words('= score', trace.score)}")


def _words(label: str, value: float) -> str:
    return f"{label:24} {value:+.6g}"


def _where(term: object) -> str:
    from fusion_bench.explain.score_trace import ScoreTerm

    if not isinstance(term, ScoreTerm) or term.source is None:
        return ""
    if term.rank is None:
        return f"  {term.source} did not return it"
    roles = f" ({', '.join(term.roles)})" if term.roles else ""
    return f"  rank {term.rank}, score {term.score:.6g}, weight {term.weight:g}{roles}"
