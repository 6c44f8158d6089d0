"""``retrieve hybrid``: semche's retriever over an embedded Chroma."""

from __future__ import annotations

from typing import Annotated

import typer

import fusion_bench.cli._base as base
import fusion_bench.cli.options.retrieve as shared
from fusion_bench.config.limits import MOST_RANK


def hybrid_command(
    dataset: shared.Dataset = None,
    documents: shared.Documents = None,
    queries: shared.Queries = None,
    encoder: shared.EncoderName = None,
    change: shared.Change = None,
    vectors: shared.Vectors = None,
    tokens: shared.Tokens = shared.TokenKind.WHITESPACE,
    padding: Annotated[
        bool,
        typer.Option("--padding/--no-padding", help="Fill BM25's lists with documents of score 0."),
    ] = True,
    dense_weight: Annotated[float, typer.Option(help="Weight of the vectors.", min=0)] = 0.5,
    sparse_weight: Annotated[float, typer.Option(help="Weight of BM25.", min=0)] = 0.5,
    rrf_constant: Annotated[int, typer.Option(help="c in weight / (c + rank).", min=0)] = 60,
    depth: Annotated[
        int,
        typer.Option(
            help="Documents per query; each search fetches twice as many.", min=1, max=MOST_RANK
        ),
    ] = 100,
    split: shared.Split = None,
    unjudged: shared.Unjudged = False,
    name: shared.Name = None,
    out: shared.Out = None,
    replace: shared.Replace = False,
    store: shared.Store = shared.DEFAULT_STORE,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Search as semche does: an embedded Chroma and BM25, fused by weighted reciprocal ranks."""
    from fusion_bench.retrieve.methods.hybrid import HybridMethod, HybridSettings

    settings = HybridSettings(dense_weight, sparse_weight, rrf_constant, tokens.value, padding)
    shared.run_retriever(
        HybridMethod(shared.build_vector_source(encoder, change, vectors), settings),
        dataset=dataset,
        datasets=datasets,
        documents=documents,
        queries=queries,
        split=split,
        unjudged=unjudged,
        json=json,
        name=name,
        out=out,
        replace=replace,
        depth=depth,
        store=store,
    )
