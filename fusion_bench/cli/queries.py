"""Make queries: drawn from a log, or written from documents and filtered by your votes."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

import fusion_bench.cli._base as base
import fusion_bench.cli.options.queries as shared
from fusion_bench.cli.output.console import echo, echo_written, print_json
from fusion_bench.cli.subcommands.queries_votes import (
    FILTER_EXAMPLES,
    VOTE_EXAMPLES,
    filter_command,
    vote_command,
)

if TYPE_CHECKING:
    from fusion_bench.queries.generate import GeneratedQueries
    from fusion_bench.queries.query_log import QueryLog
    from fusion_bench.queries.sample_log import QuerySample

command = base.command_app(
    help="Make queries: drawn from a log, or written from documents and filtered by your votes.",
    no_args_is_help=True,
    epilog=base.format_examples(
        "fusion-bench queries sample searches.csv --n 200 --out queries.jsonl",
        "fusion-bench queries generate --documents docs.jsonl --n 60 --llm model=gpt-5-mini "
        "--out generated.jsonl",
        "fusion-bench queries vote generated.jsonl --documents docs.jsonl",
        "fusion-bench queries filter generated.jsonl --documents docs.jsonl "
        "--llm model=gpt-5-mini --out queries.jsonl",
    ),
)


@command.command(
    "sample",
    epilog=base.format_examples(
        "fusion-bench queries sample searches.txt --n 200 --out queries.jsonl",
        "fusion-bench queries sample searches.csv --column term --n 200 --drop-personal "
        "--out queries.jsonl",
    ),
)
def sample_command(
    log: Annotated[
        Path,
        typer.Argument(help="One query a line, JSON Lines, CSV or TSV.", metavar="LOG"),
    ],
    out: shared.Out,
    n: Annotated[int, typer.Option("--n", help="Queries to draw.", min=1)] = 200,
    column: Annotated[
        str | None,
        typer.Option(help="Column or key of the text. Default: query, text, …", metavar="NAME"),
    ] = None,
    drop_personal: Annotated[
        bool, typer.Option("--drop-personal", help="Replace queries with personal data.")
    ] = False,
    seed: shared.Seed = 0,
    json: base.JsonFlag = False,
) -> None:
    """Draw queries from a log: as many that many ask as that few ask.

    Queries that differ in case, blanks or punctuation count as one, and of similar ones only the
    first is drawn. A query that seems to hold an address, a telephone, card or account number or a
    password is flagged under 'personal'.
    """
    from fusion_bench.queries.query_log import read_query_log
    from fusion_bench.queries.sample_log import sample_queries, write_sample

    read = read_query_log(log, column)
    sample = sample_queries(read, n, seed=seed, drop_personal=drop_personal)
    write_sample(sample, out)
    if json:
        left_out = {"too_long": read.too_long, "empty": read.empty}
        print_json({"searches": read.searches, **left_out, "sample": sample})
        return
    echo(f"{read.searches:,} searches, {len(read.queries):,} distinct queries")
    is_uniform = read.queries[0].frequency == read.queries[-1].frequency  # the most frequent first
    for line in (*_describe_left_out(read), *_describe_sample(sample, is_uniform=is_uniform)):
        echo(line)
    echo_written([out])


def _describe_left_out(log: QueryLog) -> list[str]:
    """Searches that do not count, so that the numbers add up to the file's."""
    from fusion_bench.queries.query_log import MOST_CHARACTERS

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
        lines.append(f"note: {sample.similar:,} similar queries were left out of the draw")
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


@command.command(
    "generate",
    epilog=base.format_examples(
        "fusion-bench queries generate --documents docs.jsonl --n 60 --llm model=gpt-5-mini "
        "--out generated.jsonl",
        "fusion-bench queries generate --documents docs.jsonl --llm model=qwen3 "
        "--llm base_url=http://127.0.0.1:8000/v1 --llm key=null "
        "--context 'technicians on site' --examples real.jsonl --out generated.jsonl",
    ),
)
def generate_command(
    documents: shared.Documents,
    out: shared.Out,
    llm: shared.Model,
    n: Annotated[int, typer.Option("--n", help="Documents to draw.", min=1)] = 60,
    context: Annotated[str, typer.Option(help="Who asks, and what for.", metavar="TEXT")] = "",
    examples: Annotated[
        Path | None,
        typer.Option(help="JSON Lines of real queries, whose style is imitated.", metavar="FILE"),
    ] = None,
    seed: shared.Seed = 0,
    store: shared.Store = shared.DEFAULT_STORE,
    json: base.JsonFlag = False,
) -> None:
    """Have a language model write a query for each of some documents.

    API keys come from environment variables. A stored answer is not paid for twice. Each query is
    marked 'synthetic', and no mean mixes it with real ones.
    """
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.io.json_objects import load_documents, load_queries
    from fusion_bench.queries.generate import generate_queries, write_generated

    settings = shared.build_settings(llm)
    known = {} if examples is None else load_queries(examples)
    with progress_bar() as progress:
        result = generate_queries(
            load_documents(documents),
            settings,
            n,
            store=store,
            seed=seed,
            context=context,
            examples=[each.text for each in known.values() if each.text][:MOST_EXAMPLES],
            on_progress=lambda done, total: progress("writing queries", done, total),
        )
    write_generated(result, out)
    if json:
        print_json({"result": result, "mean_overlap": result.mean_overlap})
        return
    for line in _describe_generated(result):
        echo(line)
    echo_written([out])
    echo(f"Next: fusion-bench queries vote {quote(str(out))} --documents {quote(str(documents))}")


#: Real queries that a prompt shows.
MOST_EXAMPLES = 10


def _describe_generated(result: GeneratedQueries) -> list[str]:
    from fusion_bench.util.formatting import pluralize

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


command.command("vote", epilog=VOTE_EXAMPLES)(vote_command)
command.command("filter", epilog=FILTER_EXAMPLES)(filter_command)
