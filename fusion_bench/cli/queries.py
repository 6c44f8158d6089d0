"""Make queries: drawn from a log, or written from documents and filtered by your votes.

Examples:
    fusion-bench queries sample searches.csv --n 200 --out queries.jsonl
    fusion-bench queries generate --documents docs.jsonl --n 60 --llm model=gpt-5-mini
        --out generated.jsonl
    fusion-bench queries vote generated.jsonl --documents docs.jsonl
    fusion-bench queries filter generated.jsonl --documents docs.jsonl
        --llm model=gpt-5-mini --out queries.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeAlias

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.config.options import Argument, File, Name, Option, Seed
from fusion_bench.errors import ConfigError
from fusion_bench.util.files import append_whole
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.data.records import Document
    from fusion_bench.judging.generated_queries import FilteredQueries, GeneratedQueries
    from fusion_bench.judging.query_log import QueryLog, QuerySample
    from fusion_bench.judging.terminal import Keyboard

Generated: TypeAlias = Annotated[Path, Argument("QUERIES")]
Model: TypeAlias = Annotated[Sequence[str], Option(metavar="KEY=VALUE")]
Drawn: TypeAlias = Annotated[int, Option("--n", min=1)]

command = base.command_group(__doc__)


class QueryOptions(base.JsonOptions):
    """Options that several of these commands have.

    Attributes:
        queries: Queries that 'queries generate' wrote.
        documents: JSON Lines with id and text.
        out: JSON Lines to write.
        llm: Set a key of the model: model=gpt-5-mini, base_url=http://…, key=VARIABLE; repeatable.
        votes: JSON Lines of votes. Default: QUERIES.votes.jsonl.
        store: SQLite file that keeps what the model answered.
        seed: Of the draw.
    """


class DrawOptions(QueryOptions):
    """Options of ``queries sample``.

    Attributes:
        log: One query a line, JSON Lines, CSV or TSV.
        count: Queries to draw.
        column: Column or key of the text. Default: query, text, …
        drop_personal: Replace queries with personal data.
        keep_similar: Draw queries that resemble another one, too.
    """

    log: Annotated[Path, Argument("LOG")]
    out: File
    count: Drawn = 200
    column: Name | None = None
    drop_personal: bool = False
    keep_similar: bool = False
    seed: Seed = 0


@base.add_command(command, name="sample")
def sample_command(options: DrawOptions) -> None:
    """Draw queries from a log: as many that many ask as that few ask.

    Queries that differ in case, blanks or punctuation count as one, and of similar ones only the
    first is drawn. A query that seems to hold an address, a telephone, card or account number or a
    password is flagged under 'personal'.

    Examples:
        fusion-bench queries sample searches.txt --n 200 --out queries.jsonl
        fusion-bench queries sample searches.csv --column term --n 200 --drop-personal
            --out queries.jsonl
    """
    from fusion_bench.judging.query_log import read_query_log, sample_queries, write_sample

    read = read_query_log(options.log, options.column)
    sample = options.call(sample_queries, read)
    write_sample(sample, options.out)
    if options.json:
        left_out = {"too_long": read.too_long, "empty": read.empty}
        print_json({"searches": read.searches, **left_out, "sample": sample})
        return
    echo(f"{read.searches:,} searches, {len(read.queries):,} distinct queries")
    is_uniform = len(set(read.queries.values())) == 1
    for line in (*_describe_left_out(read), *_describe_sample(sample, is_uniform=is_uniform)):
        echo(line)
    echo_written([options.out])


def _describe_left_out(log: QueryLog) -> list[str]:
    """Searches that do not count, so that the numbers add up to the file's."""
    from fusion_bench.judging.query_log import MOST_CHARACTERS

    reasons = {
        "without a letter or digit": log.empty,
        f"of more than {MOST_CHARACTERS:,} characters": log.too_long,
    }
    return [
        f"note: {count:,} {'search' if count == 1 else 'searches'} {reason} left out"
        for reason, count in reasons.items()
        if count
    ]


def _describe_sample(sample: QuerySample, *, is_uniform: bool) -> list[str]:
    drawn = dict.fromkeys(sample.distinct, 0)
    for query in sample.queries:
        drawn[query.stratum] += 1
    strata = ", ".join(f"{name} {drawn[name]:,} of {n:,}" for name, n in sample.distinct.items())
    lines = [f"drawn: {len(sample.queries):,} ({strata})"]
    if is_uniform:
        lines.append(
            "note: all queries were asked equally often, so head, torso and tail mean nothing "
            "here: they follow the alphabet"
        )
    if sample.similar:
        lines.append(
            f"note: {sample.similar:,} similar queries were left out of the draw: --keep-similar "
            "draws them too"
        )
    for kind, count in sample.personal.items():
        lines.append(f"note: {count:,} with {kind}: left out")
    flagged = [query for query in sample.queries if query.personal]
    if flagged:
        lines.append(
            f"note: {len(flagged):,} with personal data, flagged under 'personal' (for example "
            f"{flagged[0].id}: {', '.join(flagged[0].personal)}): --drop-personal replaces them"
        )
    if sample.short:
        lines.append(f"note: {sample.short:,} fewer than asked for: the log has no more")
    return lines


class ModelOptions(QueryOptions):
    """Options of what a language model is asked."""

    documents: File
    out: File
    llm: Model
    store: File = Path("reports/queries/answers.sqlite")


class GenerateOptions(ModelOptions):
    """Options of ``queries generate``.

    Attributes:
        count: Documents to draw.
        context: Who asks, and what for.
        examples: JSON Lines of real queries, whose style is imitated.
    """

    count: Drawn = 60
    context: Annotated[str, Option(metavar="TEXT")] = ""
    examples: File | None = None
    seed: Seed = 0


@base.add_command(command, name="generate")
def generate_command(options: GenerateOptions) -> None:
    """Have a language model write a query for each of some documents.

    API keys come from environment variables. A stored answer is not paid for twice. Each query is
    marked 'synthetic', and no mean mixes it with real ones.

    Examples:
        fusion-bench queries generate --documents docs.jsonl --n 60 --llm model=gpt-5-mini
            --out generated.jsonl
        fusion-bench queries generate --documents docs.jsonl --llm model=qwen3
            --llm base_url=http://127.0.0.1:8000/v1 --llm key=null
            --context 'technicians on site' --examples real.jsonl --out generated.jsonl
    """
    from fusion_bench.io.json_objects import load_documents, load_queries
    from fusion_bench.judging.generated_queries import generate_queries
    from fusion_bench.models.endpoints import ChatSettings

    settings = base.parse_llm(ChatSettings, options.llm)
    known = {} if options.examples is None else load_queries(options.examples)
    with progress_bar() as progress:
        result = options.call(
            generate_queries,
            *(load_documents(options.documents), settings),
            examples=[each.text for each in known.values() if each.text][:MOST_EXAMPLES],
            on_progress=lambda done, total: progress("writing queries", done, total),
        )
    if options.json:
        print_json({"result": result, "mean_overlap": result.mean_overlap})
        return
    for line in _describe_generated(result):
        echo(line)
    echo_written([options.out])
    words = (quote(str(options.out)), quote(str(options.documents)))
    echo("Next: fusion-bench queries vote {} --documents {}".format(*words))


#: Real queries that a prompt shows.
MOST_EXAMPLES = 10


def _describe_generated(result: GeneratedQueries) -> list[str]:
    usage = result.usage
    lines = [
        f"{pluralize(len(result.queries), 'query')} by {result.model} ({usage.asked:,} asked for, "
        f"{usage.stored:,} stored, {usage.tokens:,} tokens)"
    ]
    if result.mean_overlap is not None:
        lines.append(
            f"their document has {100 * result.mean_overlap:.0f} % of their words; a high share "
            "favors lexical search"
        )
    if result.unread:
        lines.append(f"note: {result.unread:,} answers without a usable query")
    if result.repeated:
        lines.append(f"note: {result.repeated:,} repeated queries left out")
    return lines


class VoteOptions(QueryOptions):
    """Options of ``queries vote``."""

    queries: Generated
    documents: File
    votes: File | None = None
    seed: Seed = 0


@base.add_command(command, name="vote")
def vote_command(options: VoteOptions) -> None:
    """Vote on generated queries: keep or drop, one key each, in random order.

    Every vote is saved at once; run the command again to go on. --json counts the votes, and asks
    for none.

    Examples:
        fusion-bench queries vote generated.jsonl --documents docs.jsonl
    """
    from fusion_bench.io.json_objects import load_documents
    from fusion_bench.judging.generated_queries import read_generated, read_votes
    from fusion_bench.judging.terminal import open_keyboard

    file = _votes_file(options.queries, options.votes)
    rows, texts = read_generated(options.queries), load_documents(options.documents)
    known = read_votes(file, [*rows]) if file.exists() else {}
    if options.json:
        kept = sum(known.values())
        print_json({"file": file, "queries": len(rows), "votes": len(known), "kept": kept})
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            f'votes need a terminal: elsewhere write {file}, one {{"id": "…", "keep": true}} a line'
        )
    with open_keyboard(sys.stdin.fileno()) as keyboard:
        for name in _shuffle_open([*rows], known, options.seed):
            keep = _ask_vote(
                keyboard,
                rows[name]["text"],
                texts.get(rows[name]["written_from"]),
                f"{len(known) + 1} of {len(rows)}",
            )
            if keep is None:
                break
            file.parent.mkdir(parents=True, exist_ok=True)
            append_whole(file, f"{json.dumps({'id': name, 'keep': keep})}\n".encode())
            known[name] = keep
    echo(f"{len(known):,} votes in {file}, {sum(known.values()):,} to keep")


def _shuffle_open(queries: list[str], votes: Mapping[str, bool], seed: int) -> list[str]:
    """The queries without a vote, in a random order that votes do not change."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(queries)).tolist()
    return [queries[i] for i in order if queries[i] not in votes]


#: Characters of a document that are shown beside its query.
MOST_SHOWN = 1_500


def _ask_vote(keyboard: Keyboard, query: str, document: Document | None, place: str) -> bool | None:
    """Show a query with its document, and wait for a key; None = the user is done."""
    echo("")
    echo(document.text[:MOST_SHOWN] if document else "(its document is not in the file)")
    echo(f"Query {place}: {query}")
    echo("k keep, d drop, q quit")
    while (key := keyboard.read_key().lower()) not in ("k", "d"):
        if key in ("q", "end"):
            return None
    return key == "k"


class FilterOptions(ModelOptions):
    """Options of ``queries filter``."""

    queries: Generated
    votes: File | None = None


@base.add_command(command, name="filter")
def filter_command(options: FilterOptions) -> None:
    """Keep the generated queries that meet the criteria which agree best with your votes.

    A model says of each query whether its document answers it, whether it is clear, and whether a
    person could have typed it. Your votes decide which of these count.

    Examples:
        fusion-bench queries filter generated.jsonl --documents docs.jsonl
            --llm model=gpt-5-mini --out queries.jsonl
    """
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.judging.generated_queries import filter_file
    from fusion_bench.models.endpoints import ChatSettings

    votes = _votes_file(options.queries, options.votes)
    refuse_inputs((votes,))
    with progress_bar() as progress:
        result = options.call(
            filter_file,
            *(options.queries, votes),
            settings=base.parse_llm(ChatSettings, options.llm),
            on_progress=lambda done, total: progress("checking queries", done, total),
        )
    if options.json:
        print_json(result)
        return
    _echo_result(result)
    echo_written([options.out])


def _echo_result(result: FilteredQueries) -> None:
    share, low, high = result.agreement
    echo(f"kept {len(result.kept):,}, dropped {len(result.dropped):,}")
    echo(f"criteria: {', '.join(result.criteria) or 'none agrees with the votes'}")
    echo(
        f"agreement with {result.votes[0]:,} votes, each held out: {100 * share:.0f} % "
        f"[{100 * low:.0f}, {100 * high:.0f}], Cohen's κ {result.kappa:.2f}"
    )
    if result.unread:
        echo(f"note: {result.unread:,} answers could not be read; these queries are dropped")


def _votes_file(queries: Path, votes: Path | None) -> Path:
    return queries.with_suffix(".votes.jsonl") if votes is None else votes
