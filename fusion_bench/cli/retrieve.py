"""Search a collection's texts and write the result as a run: BM25, dense, HyDE, graph, hybrid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import fusion_bench.cli.application.app as base
import fusion_bench.cli.application.retrieve_options as shared
from fusion_bench.config.models import MOST_RANK


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
    from fusion_bench.models.retrievers.hybrid import HybridMethod, HybridSettings

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


command = base.command_app(
    help="Search a collection's texts and write the result as a run.",
    no_args_is_help=True,
    epilog=base.format_examples(
        "fusion-bench retrieve bm25 --dataset mine",
        "fusion-bench retrieve dense --dataset mine --encoder minilm",
        "fusion-bench retrieve hyde --dataset mine --field hyde",
        "fusion-bench retrieve graph --dataset mine --entities e.jsonl --relations r.jsonl",
        "fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz",
    ),
)


@command.command(
    "bm25",
    epilog=base.format_examples(
        "fusion-bench retrieve bm25 --dataset mine",
        "fusion-bench retrieve bm25 --documents d.jsonl --queries q.jsonl --out bm25.trec",
        "fusion-bench retrieve bm25 --dataset mine --tokens bigrams --name bm25-ja",
    ),
)
def bm25_command(
    dataset: shared.Dataset = None,
    documents: shared.Documents = None,
    queries: shared.Queries = None,
    tokens: shared.Tokens = shared.TokenKind.STEM,
    language: shared.Language = "english",
    k1: Annotated[
        float, typer.Option(help="How soon a repeated word saturates.", min=0, max=1000)
    ] = 1.5,
    b: Annotated[float, typer.Option(help="How much long documents lose.", min=0, max=1)] = 0.75,
    padding: Annotated[
        bool | None,
        typer.Option(
            "--padding/--no-padding",
            help="Fill lists with documents of score 0. Default: only with --tokens whitespace.",
        ),
    ] = None,
    depth: shared.Depth = 100,
    split: shared.Split = None,
    unjudged: shared.Unjudged = False,
    name: shared.Name = None,
    out: shared.Out = None,
    replace: shared.Replace = False,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Search by BM25."""
    from fusion_bench.models.retrievers.lexical import LexicalRetriever

    shared.run_retriever(
        LexicalRetriever(tokens.value, language, k1, b, padding),
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
    )


@command.command(
    "dense",
    epilog=base.format_examples(
        "fusion-bench retrieve dense --dataset mine",
        "fusion-bench retrieve dense --dataset mine --encoder openai "
        "--set model=text-embedding-3-small",
        "fusion-bench retrieve dense --dataset mine --vectors vectors.npz",
    ),
)
def dense_command(
    dataset: shared.Dataset = None,
    documents: shared.Documents = None,
    queries: shared.Queries = None,
    encoder: shared.EncoderName = None,
    change: shared.Change = None,
    vectors: shared.Vectors = None,
    save_vectors: Annotated[
        Path | None, typer.Option(help="Write the vectors to this archive.", metavar="FILE")
    ] = None,
    depth: shared.Depth = 100,
    split: shared.Split = None,
    unjudged: shared.Unjudged = False,
    name: shared.Name = None,
    out: shared.Out = None,
    replace: shared.Replace = False,
    store: shared.Store = shared.DEFAULT_STORE,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Search by the cosine of vectors: an encoder's, or stored ones.

    API keys come from environment variables. Run the same command again to resume; what is stored
    is not paid for twice.
    """
    from fusion_bench.models.retrievers.dense import DenseRetriever

    source = shared.build_vector_source(encoder, change, vectors)
    shared.run_retriever(
        DenseRetriever(source, save_vectors),
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


@command.command(
    "hyde",
    epilog=base.format_examples(
        "fusion-bench retrieve hyde --dataset mine --field hyde",
        "fusion-bench retrieve hyde --dataset mine --llm model=gpt-5-mini "
        "--save-passages passages.jsonl",
        "fusion-bench retrieve hyde --dataset mine --passages passages.jsonl",
    ),
)
def hyde_command(
    dataset: shared.Dataset = None,
    documents: shared.Documents = None,
    queries: shared.Queries = None,
    llm: Annotated[
        list[str] | None,
        typer.Option(
            help="Have a language model write the passages: model=…, base_url=…, key=…, "
            "prompt=FILE, temperature=…, max_tokens=…; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    passages: Annotated[
        Path | None,
        typer.Option(help="JSON Lines with id and stored passage.", metavar="FILE"),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(help="Key of the passage in --passages, or in the queries. Default: hyde."),
    ] = None,
    save_passages: Annotated[
        Path | None, typer.Option(help="Write the passages to this file.", metavar="FILE")
    ] = None,
    encoder: shared.EncoderName = None,
    change: shared.Change = None,
    vectors: shared.Vectors = None,
    depth: shared.Depth = 100,
    split: shared.Split = None,
    unjudged: shared.Unjudged = False,
    name: shared.Name = None,
    out: shared.Out = None,
    replace: shared.Replace = False,
    store: shared.Store = shared.DEFAULT_STORE,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Search densely with a passage that would answer the query (HyDE).

    The passages are stored ones, or a language model's, which are paid for once.
    """
    from fusion_bench.models.retrievers.hyde import HydeRetriever

    writer = shared.build_writer(llm, passages, field)
    source = shared.build_vector_source(encoder or shared.DEFAULT_ENCODER, change, vectors)
    shared.run_retriever(
        HydeRetriever(source, writer, field or "hyde", passages, save_passages),
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


@command.command(
    "graph",
    epilog=base.format_examples(
        "fusion-bench retrieve graph --dataset mine --entities e.jsonl --relations r.jsonl"
    ),
)
def graph_command(
    entities: Annotated[
        Path,
        typer.Option(help="JSON Lines: id, name, aliases, documents of an entity.", metavar="FILE"),
    ],
    relations: Annotated[
        Path | None,
        typer.Option(help="JSON Lines: source, target, weight of a relation.", metavar="FILE"),
    ] = None,
    dataset: shared.Dataset = None,
    documents: shared.Documents = None,
    queries: shared.Queries = None,
    tokens: shared.Tokens = shared.TokenKind.STEM,
    language: shared.Language = "english",
    damping: Annotated[
        float, typer.Option(help="Chance of walking on, below 1.", min=0, max=0.999)
    ] = 0.85,
    threshold: Annotated[
        float, typer.Option(help="Share of a name that a query must hold.", min=0.001, max=1)
    ] = 0.5,
    sharpness: Annotated[
        float, typer.Option(help="The higher, the less half a name counts.", min=0, max=100)
    ] = 2.0,
    mention_weight: Annotated[
        float, typer.Option(help="Weight of an edge between an entity and a document.", min=0.001)
    ] = 1.0,
    depth: shared.Depth = 100,
    split: shared.Split = None,
    unjudged: shared.Unjudged = False,
    name: shared.Name = None,
    out: shared.Out = None,
    replace: shared.Replace = False,
    datasets: base.DatasetFolders = None,
    json: base.JsonFlag = False,
) -> None:
    """Search by a walk over entities and documents, from the entities that the query names."""
    from fusion_bench.models.retrievers.graph import GraphRetriever, GraphRules

    rules = GraphRules(tokens.value, language, threshold, sharpness, damping, mention_weight)
    shared.run_retriever(
        GraphRetriever(entities, relations, rules),
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
    )


command.command(
    "hybrid",
    epilog=base.format_examples(
        "fusion-bench retrieve hybrid --dataset mine",
        "fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz --tokens stem "
        "--no-padding --depth 500",
    ),
)(hybrid_command)
