"""Options that the ways to retrieve share, and what they print."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.config.models import MOST_RANK

if TYPE_CHECKING:
    from fusion_bench.models.encoders import TextEncoder
    from fusion_bench.models.retrieval import Retriever
    from fusion_bench.models.retrieve_run import WrittenRun
    from fusion_bench.models.retrievers.dense import VectorSource
    from fusion_bench.models.stored_answers import PassageWriter


#: The encoder where no vectors are stored.
DEFAULT_ENCODER = "minilm"
DEFAULT_STORE = Path("reports/retrieve/answers.sqlite")


class TokenKind(StrEnum):
    """What a token is."""

    STEM = "stem"
    WHITESPACE = "whitespace"
    BIGRAMS = "bigrams"


Dataset = Annotated[
    str | None, typer.Option(help="A dataset's name, folder or dataset.yaml; it gets the run.")
]
Documents = Annotated[
    Path | None,
    typer.Option(help="JSON Lines with id and text; default: the dataset's.", metavar="FILE"),
]
Queries = Annotated[
    Path | None,
    typer.Option(help="JSON Lines with id and text; default: the dataset's.", metavar="FILE"),
]
Split = Annotated[str | None, typer.Option(help="Only queries of this split.")]
Unjudged = Annotated[
    bool, typer.Option("--unjudged", help="Search for queries without judgments too.")
]
Name = Annotated[str | None, typer.Option(help="Name of the run. Default: the method's.")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The run. Default: runs/NAME.trec.gz beside the dataset.yaml.", metavar="FILE"
    ),
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a run that is there.")]
Depth = Annotated[int, typer.Option(help="Documents per query.", min=1, max=MOST_RANK)]
Tokens = Annotated[
    TokenKind,
    typer.Option(
        help="stem: stemmed words; whitespace: lower case, split at blanks; bigrams: pairs of "
        "characters in Chinese, Japanese and Korean, stemmed words elsewhere."
    ),
]
Language = Annotated[str, typer.Option(help="Stemmer and stopwords, such as english or french.")]
EncoderName = Annotated[
    str | None,
    typer.Option(
        help="minilm, sentence_transformers, openai or tei. Default: minilm, or none with "
        "--vectors."
    ),
]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set a key of the encoder, such as model=text-embedding-3-small; repeatable.",
        metavar="KEY=VALUE",
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(help="NumPy archive with stored vectors: doc_ids, doc, query_ids, query."),
]
Store = Annotated[
    Path, typer.Option(help="SQLite file that keeps what models answered.", metavar="FILE")
]


def build_encoder(name: str, changes: Sequence[str]) -> TextEncoder:
    """The encoder of a name, with keys set.

    Raises:
        ConfigError: No encoder has that name, or a key breaks a rule.
    """
    from fusion_bench.errors import ConfigError
    from fusion_bench.experiment.overrides import set_options
    from fusion_bench.models.encoders import encoders

    encoders.find_plugin(name)
    try:
        return encoders.build(
            set_options({"method": name}, changes, example="model=text-embedding-3-small")
        )
    except ConfigError as error:
        raise ConfigError(f"encoder {name!r}: {error} (set it with --set KEY=VALUE)") from None


def build_vector_source(
    encoder: str | None, changes: list[str] | None, vectors: Path | None
) -> VectorSource:
    """Where vectors come from: an archive, an encoder, or both.

    Raises:
        ConfigError: As for :func:`build_encoder`.
    """
    from fusion_bench.models.retrievers.dense import VectorSource

    if encoder is None and vectors is not None:
        base.refuse_options("--vectors without --encoder", {"--set": changes})
        return VectorSource(None, vectors)
    return VectorSource(build_encoder(encoder or DEFAULT_ENCODER, changes or ()), vectors)


def build_writer(
    llm: list[str] | None, passages: Path | None, field: str | None
) -> PassageWriter | None:
    """Who writes passages; None = stored ones are replayed.

    Raises:
        ConfigError: A key breaks a rule.
        typer.BadParameter: Passages are both stored and written.
    """
    if llm is None:
        return None
    from fusion_bench.config.models import parse_model
    from fusion_bench.experiment.overrides import set_options
    from fusion_bench.models.stored_answers import PassageWriter

    base.refuse_options("--llm", {"--passages": passages, "--field": field})
    data = set_options({}, llm, option="--llm", example="model=gpt-5-mini")
    return parse_model(PassageWriter, data, lambda path: f"--llm {'.'.join(map(str, path))}")


def run_retriever(
    retriever: Retriever,
    *,
    dataset: str | None,
    datasets: list[Path] | None,
    documents: Path | None,
    queries: Path | None,
    split: str | None,
    unjudged: bool,
    json: bool,
    **options: Any,  # noqa: ANN401 - those of RetrieveOptions
) -> None:
    """Search, write the run, and say what was done."""
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.io.dataset_paths import find_dataset
    from fusion_bench.models.retrieval import TextFiles
    from fusion_bench.models.retrieve_run import RetrieveOptions, retrieve_run

    path = None if dataset is None else find_dataset(dataset, base.folders_for(datasets))
    files = TextFiles(path, documents, queries, split, unjudged=unjudged)
    with progress_bar() as show:
        written = retrieve_run(retriever, RetrieveOptions(files, **options), show)
    print_run(written, as_json=json)


def print_run(written: WrittenRun, *, as_json: bool) -> None:
    """Print what was found, what models were asked for, and where the run is."""
    from fusion_bench.util.formatting import pluralize

    if as_json:
        print_json(written)
        return
    echo(
        f"{written.name}: {pluralize(written.rows, 'result')} for "
        f"{pluralize(written.queries, 'query')} among {pluralize(written.documents, 'document')}"
    )
    for kind, usage in written.usage.items():
        tokens = f", {usage.tokens:,} tokens billed" if usage.tokens else ""
        echo(
            f"{kind}: {usage.stored:,} stored, {usage.asked:,} computed in "
            f"{pluralize(usage.calls, 'call')}{tokens}"
        )
    if written.empty:
        count = pluralize(len(written.empty), "query")
        echo(f"note: {count} found nothing (for example {written.empty[0]!r})")
    echo(f"Written: {written.path}")
    if written.dataset is None:
        echo("in dataset.yaml:")
        echo("runs:")
        echo(f"  {written.line}")
    else:
        echo(f"{written.dataset} names it: {written.line}")
