"""Search a collection's texts and write the result as a run: BM25, dense, HyDE, graph, hybrid.

Examples:
    fusion-bench retrieve bm25 --dataset mine
    fusion-bench retrieve dense --dataset mine --encoder minilm
    fusion-bench retrieve hyde --dataset mine --field hyde
    fusion-bench retrieve graph --dataset mine --entities e.jsonl --relations r.jsonl
    fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.retrieve_options import (
    DEFAULT_ENCODER,
    KeyValues,
    SearchOptions,
    Tokens,
    VectorOptions,
)
from fusion_bench.config.options import Amount, Changes, File, Option

if TYPE_CHECKING:
    from fusion_bench.models.endpoints import PassageWriter

command = base.command_group((__doc__ or "").replace(": BM25, dense, HyDE, graph, hybrid.", "."))


class Bm25Options(SearchOptions):
    """Options of ``retrieve bm25``.

    Attributes:
        k1: How soon a repeated word saturates.
        b: How much long documents lose.
        padding: Fill lists with documents of score 0. Default: only with --tokens whitespace.
    """

    tokens: Tokens = "stem"
    language: str = "english"
    k1: Annotated[float, Option(min=0, max=1000)] = 1.5
    b: Annotated[float, Option(min=0, max=1)] = 0.75
    padding: bool | None = None


@base.add_command(command, name="bm25")
def bm25_command(options: Bm25Options) -> None:
    """Search by BM25.

    Examples:
        fusion-bench retrieve bm25 --dataset mine
        fusion-bench retrieve bm25 --documents d.jsonl --queries q.jsonl --out bm25.trec
        fusion-bench retrieve bm25 --dataset mine --tokens bigrams --name bm25-ja
    """
    from fusion_bench.models.retrievers.lexical import LexicalRetriever

    options.search(options.call(LexicalRetriever))


class DenseOptions(VectorOptions):
    """Options of ``retrieve dense``.

    Attributes:
        save_vectors: Write the vectors to this archive.
    """

    encoder: str | None = None
    change: Changes = ()
    vectors: Path | None = None
    save_vectors: File | None = None


@base.add_command(command, name="dense")
def dense_command(options: DenseOptions) -> None:
    """Search by the cosine of vectors: an encoder's, or stored ones.

    API keys come from environment variables. Run the same command again to resume; what is stored
    is not paid for twice.

    Examples:
        fusion-bench retrieve dense --dataset mine
        fusion-bench retrieve dense --dataset mine --encoder openai
            --set model=text-embedding-3-small
        fusion-bench retrieve dense --dataset mine --vectors vectors.npz
    """
    from fusion_bench.models.retrievers.dense import DenseRetriever

    options.search(DenseRetriever(options.make_source(), options.save_vectors))


class HydeOptions(VectorOptions):
    """Options of ``retrieve hyde``.

    Attributes:
        llm: Have a language model write the passages: model=…, base_url=…, key=…, prompt=FILE,
            temperature=…, max_tokens=…; repeatable.
        passages: JSON Lines with id and stored passage.
        field: Key of the passage in --passages, or in the queries. Default: hyde.
        save_passages: Write the passages to this file.
    """

    llm: KeyValues = ()
    passages: File | None = None
    field: str | None = None
    save_passages: File | None = None


@base.add_command(command, name="hyde")
def hyde_command(options: HydeOptions) -> None:
    """Search densely with a passage that would answer the query (HyDE).

    The passages are stored ones, or a language model's, which are paid for once.

    Examples:
        fusion-bench retrieve hyde --dataset mine --field hyde
        fusion-bench retrieve hyde --dataset mine --llm model=gpt-5-mini
            --save-passages passages.jsonl
        fusion-bench retrieve hyde --dataset mine --passages passages.jsonl
    """
    from fusion_bench.models.retrievers.dense import HydeRetriever

    writer = _make_writer(options)
    retriever = options.call(
        HydeRetriever,
        *(options.make_source(DEFAULT_ENCODER), writer),
        field=options.field or "hyde",
        save=options.save_passages,
    )
    options.search(retriever)


def _make_writer(options: HydeOptions) -> PassageWriter | None:
    """Who writes passages; None = stored ones are replayed.

    Raises:
        ConfigError: A key breaks a rule.
        typer.BadParameter: Passages are both stored and written.
    """
    from fusion_bench.models.endpoints import PassageWriter

    if not options.llm:
        return None
    base.refuse(options, "does not go with --llm", "passages", "field")
    return base.parse_llm(PassageWriter, options.llm)


class GraphFiles(base.JsonOptions, leads=True):
    """The graph.

    Attributes:
        entities: JSON Lines: id, name, aliases, documents of an entity.
        relations: JSON Lines: source, target, weight of a relation.
    """

    entities: File
    relations: File | None = None


class GraphOptions(GraphFiles, SearchOptions):
    """Options of ``retrieve graph``.

    Attributes:
        damping: Chance of walking on, below 1.
        threshold: Share of a name that a query must hold.
        sharpness: The higher, the less half a name counts.
        mention_weight: Weight of an edge between an entity and a document.
    """

    tokens: Tokens = "stem"
    language: str = "english"
    damping: Annotated[float, Option(min=0, max=0.999)] = 0.85
    threshold: Annotated[float, Option(min=0.001, max=1)] = 0.5
    sharpness: Annotated[float, Option(min=0, max=100)] = 2.0
    mention_weight: Annotated[float, Option(min=0.001)] = 1.0


@base.add_command(command, name="graph")
def graph_command(options: GraphOptions) -> None:
    """Search by a walk over entities and documents, from the entities that the query names.

    Examples:
        fusion-bench retrieve graph --dataset mine --entities e.jsonl --relations r.jsonl
    """
    from fusion_bench.models.retrievers.graph import GraphRetriever, GraphRules

    options.search(GraphRetriever(options.entities, options.relations, options.call(GraphRules)))


class HybridOptions(VectorOptions):
    """Options of ``retrieve hybrid``.

    Attributes:
        padding: Fill BM25's lists with documents of score 0.
        dense_weight: Weight of the vectors.
        sparse_weight: Weight of BM25.
        rrf_constant: c in weight / (c + rank).
        depth: Documents per query; each search fetches twice as many.
    """

    encoder: str | None = None
    change: Changes = ()
    vectors: Path | None = None
    tokens: Tokens = "whitespace"
    padding: bool = True
    dense_weight: Amount = 0.5
    sparse_weight: Amount = 0.5
    rrf_constant: Annotated[int, Option(min=0)] = 60


@base.add_command(command, name="hybrid")
def hybrid_command(options: HybridOptions) -> None:
    """Search as semche does: an embedded Chroma and BM25, fused by weighted reciprocal ranks.

    Examples:
        fusion-bench retrieve hybrid --dataset mine
        fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz --tokens stem
            --no-padding --depth 500
    """
    from fusion_bench.models.retrievers.hybrid import HybridMethod, HybridSettings

    settings = options.call(HybridSettings, zero_padding=options.padding)
    options.search(HybridMethod(options.make_source(), settings))
