"""Draw queries from a log of searches.

Examples:
    fusion-bench queries sample searches.csv --n 200 --out queries.jsonl
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.config.options import Argument, File, Name, Option, Seed

if TYPE_CHECKING:
    from fusion_bench.judging.query_log import QuerySample

command = base.command_group(__doc__)


@command.callback()
def _keep_group() -> None:
    """Keep ``sample`` a word of the command line: Typer drops the name of a single command."""


class DrawOptions(base.JsonOptions):
    """Options of ``queries sample``.

    Attributes:
        log: One query a line, JSON Lines, CSV or TSV.
        out: JSON Lines to write.
        count: Queries to draw.
        column: Column or key of the text. Default: query, text, …
        drop_personal: Replace queries with personal data.
        keep_similar: Draw queries that resemble another one, too.
        seed: Of the draw.
    """

    log: Annotated[Path, Argument("LOG")]
    out: File
    count: Annotated[int, Option("--n", min=1)] = 200
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
    from fusion_bench.judging.query_log import (
        MOST_CHARACTERS,
        read_query_log,
        sample_queries,
        write_sample,
    )

    read = read_query_log(options.log, options.column)
    sample = options.call(sample_queries, read)
    write_sample(sample, options.out)
    if options.json:
        left_out = {"too_long": read.too_long, "empty": read.empty}
        print_json({"searches": read.searches, **left_out, "sample": sample})
        return
    echo(f"{read.searches:,} searches, {len(read.queries):,} distinct queries")
    is_uniform = len(set(read.queries.values())) == 1
    reasons = {
        "without a letter or digit": read.empty,
        f"of more than {MOST_CHARACTERS:,} characters": read.too_long,
    }
    for reason, count in reasons.items():
        if count:  # so that the counts add up to the file's
            echo(f"note: {count:,} {'search' if count == 1 else 'searches'} {reason} left out")
    for line in _describe_sample(sample, is_uniform=is_uniform):
        echo(line)
    echo_written([options.out])


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
