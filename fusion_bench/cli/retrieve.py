"""Search the texts of a collection and write a run: BM25, dense, HyDE, hybrid.

Examples:
    fusion-bench retrieve bm25 --dataset mine
    fusion-bench retrieve dense --dataset mine --encoder minilm
    fusion-bench retrieve hyde --dataset mine --field hyde
    fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.config.options import Changes, File, Name, Option
from fusion_bench.errors import ConfigError
from fusion_bench.models.options import HybridSettings, LexicalOptions, RetrieveOptions
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.models.encoders import TextEncoder
    from fusion_bench.models.retrieval import Retriever, WrittenRun
    from fusion_bench.models.retrievers.dense import VectorSource

#: The encoder where no vectors are stored.
DEFAULT_ENCODER = "minilm"

command = base.command_group((__doc__ or "").replace(": BM25, dense, HyDE, hybrid.", "."))


class RetrieveCommand(RetrieveOptions, base.DatasetOptions, base.PluginOptions):
    """Options that name what is searched, and the run to write.

    Attributes:
        dataset: A dataset's name, folder or dataset.yaml; it gets the run.
    """

    dataset: Name | None = None

    def search(self, retriever: Retriever) -> None:
        """Search, write the run, and say what was done."""
        from fusion_bench.cli.application.progress import progress_bar
        from fusion_bench.engines.pulled_dataset import read_record
        from fusion_bench.models.retrieval import retrieve_run

        dataset = None if self.dataset is None else self.find(self.dataset)
        with progress_bar() as show:
            written = self.call(retrieve_run, retriever, dataset, self, on_progress=show)
        record = None if dataset is None else read_record(dataset.parent)
        coverage = None
        if (
            record is not None
            and record.coverage is not None
            and self.documents is None
            and record.documents == written.documents  # else the texts are others by now
        ):
            coverage = (
                f"searched {record.coverage}: a document that they lack cannot be found; pull "
                "again with --all-texts --replace, or name a file of all texts with --documents"
            )
        print_run(written, as_json=self.json, coverage=coverage)


class Bm25Options(LexicalOptions, RetrieveCommand):
    """Options of ``retrieve bm25``."""


class VectorOptions(RetrieveCommand):
    """Options that name the vectors of a search.

    Attributes:
        encoder: minilm, sentence_transformers, openai or tei. Default: minilm, or none with
            --vectors.
        change: Set a key of the encoder, such as model=text-embedding-3-small; repeatable.
        vectors: NumPy archive with stored vectors: doc_ids, doc, query_ids, query.
        store: SQLite file that keeps what models answered.
    """

    encoder: str | None = None
    change: Changes = ()
    vectors: File | None = None
    store: File = Path("reports/retrieve/answers.sqlite")

    def make_source(self, default: str | None = None) -> VectorSource:
        """Return the source of the vectors: an archive, an encoder, or both.

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

    llm: Annotated[Sequence[str], Option(metavar="KEY=VALUE")] = ()
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

    writer = None  # stored passages are replayed
    if options.llm:
        from fusion_bench.models.endpoints import PassageWriter

        base.refuse(options, "does not go with --llm", "passages", "field")
        writer = base.parse_llm(PassageWriter, options.llm)
    retriever = options.call(
        HydeRetriever,
        *(options.make_source(DEFAULT_ENCODER), writer),
        field=options.field or "hyde",
        save=options.save_passages,
    )
    options.search(retriever)


class HybridOptions(HybridSettings, VectorOptions):
    """Options of ``retrieve hybrid``.

    Attributes:
        depth: Documents per query; each search fetches twice as many.
    """


@base.add_command(command, name="hybrid")
def hybrid_command(options: HybridOptions) -> None:
    """Search as semche does: an embedded Chroma and BM25, fused by weighted reciprocal ranks.

    Examples:
        fusion-bench retrieve hybrid --dataset mine
        fusion-bench retrieve hybrid --dataset mine --vectors vectors.npz --tokens stem
            --no-padding --depth 500
    """
    from fusion_bench.models.retrievers.hybrid import HybridMethod

    options.search(HybridMethod(options.make_source(), options.call(HybridSettings)))


def build_encoder(name: str, changes: Sequence[str]) -> TextEncoder:
    """The encoder of a name, with keys set.

    Raises:
        ConfigError: No encoder has that name, or a key breaks a rule.
    """
    from fusion_bench.experiment.overrides import set_options
    from fusion_bench.models.encoders import encoders

    encoders.find_plugin(name)
    try:
        return encoders.build(
            set_options({"method": name}, changes, example="model=text-embedding-3-small")
        )
    except ConfigError as error:
        raise ConfigError(f"encoder {name!r}: {error} (set it with --set KEY=VALUE)") from None


def print_run(written: WrittenRun, *, as_json: bool, coverage: str | None) -> None:
    """Print what was found, what models were asked for, and where the run is.

    Args:
        written: The run.
        as_json: As one record.
        coverage: Which documents alone were searched; None = all.
    """
    if as_json:
        print_json({**vars(written), "coverage": coverage})
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
    if coverage is not None:
        echo(f"warning: {coverage}")
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
