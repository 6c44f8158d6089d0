"""Options that the ways to retrieve share, and what they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.config.options import Changes, Depth, File, Option

if TYPE_CHECKING:
    from fusion_bench.models.encoders import TextEncoder
    from fusion_bench.models.retrieval import Retriever, WrittenRun
    from fusion_bench.models.retrievers.dense import VectorSource

#: The encoder where no vectors are stored.
DEFAULT_ENCODER = "minilm"
DEFAULT_STORE = Path("reports/retrieve/answers.sqlite")

Tokens: TypeAlias = Literal["stem", "whitespace", "bigrams"]
KeyValues: TypeAlias = Annotated[Sequence[str], Option(metavar="KEY=VALUE")]


class TextOptions(base.DatasetOptions, leads=True):
    """What is searched.

    Attributes:
        dataset: A dataset's name, folder or dataset.yaml; it gets the run.
        documents: JSON Lines with id and text; default: the dataset's.
        queries: JSON Lines with id and text; default: the dataset's.
    """

    dataset: str | None = None
    documents: File | None = None
    queries: File | None = None


class SearchOptions(TextOptions):
    """How it is searched, and where the run goes.

    Attributes:
        tokens: stem: stemmed words; whitespace: lower case, split at blanks; bigrams: pairs of
            characters in Chinese, Japanese and Korean, stemmed words elsewhere.
        language: Stemmer and stopwords, such as english or french.
        depth: Documents per query.
        split: Only queries of this split.
        unjudged: Search for queries without judgments too.
        name: Name of the run. Default: the method's.
        out: The run. Default: runs/NAME.trec.gz beside the dataset.yaml.
        replace: Replace a run that is there.
        store: SQLite file that keeps what models answered.
    """

    depth: Depth = 100
    split: str | None = None
    unjudged: bool = False
    name: str | None = None
    out: File | None = None
    replace: bool = False

    def search(self, retriever: Retriever) -> None:
        """Search, write the run, and say what was done."""
        from fusion_bench.cli.application.progress import progress_bar
        from fusion_bench.models.retrieval import RetrieveOptions, TextFiles, retrieve_run

        files = self.call(TextFiles, None if self.dataset is None else self.find(self.dataset))
        with progress_bar() as show:
            written = retrieve_run(retriever, self.call(RetrieveOptions, files), show)
        print_run(written, as_json=self.json)


class StoreOptions(base.DatasetOptions):
    """Where the answers of models are kept."""

    store: File = DEFAULT_STORE


class VectorOptions(SearchOptions, StoreOptions):
    """Where the vectors of a search come from.

    Attributes:
        encoder: minilm, sentence_transformers, openai or tei. Default: minilm, or none with
            --vectors.
        change: Set a key of the encoder, such as model=text-embedding-3-small; repeatable.
        vectors: NumPy archive with stored vectors: doc_ids, doc, query_ids, query.
    """

    encoder: str | None = None
    change: Changes = ()
    vectors: Path | None = None

    def make_source(self, default: str | None = None) -> VectorSource:
        """Where vectors come from: an archive, an encoder, or both.

        Args:
            default: The encoder where none is named, though vectors are stored.

        Raises:
            ConfigError: No encoder has that name, or a key breaks a rule.
        """
        from fusion_bench.models.retrievers.dense import VectorSource

        name = self.encoder or default
        if name is None and self.vectors is not None:
            base.refuse(self, "does not go with --vectors without --encoder", "change")
            return VectorSource(None, self.vectors)
        return VectorSource(build_encoder(name or DEFAULT_ENCODER, self.change), self.vectors)


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
