"""Options of what models are asked for: a rerank, a retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from fusion_bench.config.options import Amount, Changes, Depth, File, Name, Names, Option, Options


class RerankOptions(Options):
    """What is reranked, and how.

    Attributes:
        dataset: A dataset's name, folder or dataset.yaml.
        system: Whose candidates: a system of the experiment, a run, or a fusion method.
        provider: A provider of --config, or a method such as cohere, tei, chat, onnx.
        fallbacks: Provider to ask when the first fails; repeatable.
        config: YAML with providers, chain, settings.
        overrides: Set a key of the provider, such as model=rerank-2, base_url=http://…,
            price.per_1000_searches=2; repeatable.
        experiment: Experiment that defines the system.
        depth: Candidates per query and trial.
        split: Only queries of this split.
        out: The list (.jsonl). Default: rerank/SYSTEM-PROVIDER.jsonl beside the dataset.yaml.
        store: SQLite file that keeps the scores.
        dry_run: Print the price and call no provider.
        max_cost: Stop before the price exceeds this.
    """

    dataset: Name
    system: Name
    provider: str | None = None
    fallbacks: Annotated[Names, Option("--fallback")] = ()
    config: File | None = None
    overrides: Changes = ()
    experiment: File | None = None
    depth: Depth = 50
    split: Name | None = None
    out: File | None = None
    store: File = Path("reports/rerank/scores.sqlite")
    dry_run: bool = False
    max_cost: Amount | None = None


class RetrieveOptions(Options):
    """What is searched, and where the run goes.

    Attributes:
        documents: JSON Lines with id and text; default: the dataset's.
        queries: JSON Lines with id and text; default: the dataset's.
        depth: Documents per query.
        split: Only queries of this split.
        unjudged: Search for queries without judgments too.
        name: Name of the run. Default: the method's.
        out: The run. Default: runs/NAME.trec.gz beside the dataset.yaml.
        replace: Replace a run that is there.
    """

    documents: File | None = None
    queries: File | None = None
    depth: Depth = 100
    split: Name | None = None
    unjudged: bool = False
    name: Name | None = None
    out: File | None = None
    replace: bool = False


Tokens: TypeAlias = Annotated[
    Literal["stem", "whitespace", "bigrams"],
    Option(
        help="stem: stemmed words; whitespace: lower case, split at blanks; bigrams: pairs of "
        "characters in Chinese, Japanese and Korean, stemmed words elsewhere."
    ),
]
Share: TypeAlias = Annotated[float, Option(min=0, max=1)]


class LexicalOptions(Options):
    """How BM25 scores.

    Attributes:
        language: Stemmer and stopwords, such as english or french.
        k1: How soon a repeated word saturates.
        b: How much long documents lose.
        padding: Fill lists with documents of score 0. Default: only with --tokens whitespace.
    """

    tokens: Tokens = "stem"
    language: str = "english"
    k1: Annotated[float, Option(min=0, max=1000)] = 1.5
    b: Share = 0.75
    padding: bool | None = None


class HybridSettings(Options):
    """How the lists of vectors and of BM25 are fused: Σ weight / (c + rank).

    Attributes:
        dense_weight: Weight of the vectors.
        sparse_weight: Weight of BM25.
        rrf_constant: c in weight / (c + rank).
        zero_padding: Fill BM25's lists with documents of score 0.
    """

    dense_weight: Amount = 0.5
    sparse_weight: Amount = 0.5
    rrf_constant: Annotated[int, Option(min=0)] = 60
    tokens: Tokens = "whitespace"
    zero_padding: Annotated[bool, Option("--padding/--no-padding")] = True
