"""``queries vote`` and ``queries filter``: what a person keeps of generated queries."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import fusion_bench.cli._base as base
import fusion_bench.cli.options.queries as shared
from fusion_bench.cli.output.console import echo, echo_written, print_json

if TYPE_CHECKING:
    from fusion_bench.data.records import Document
    from fusion_bench.judge.terminal.keyboard import Keyboard
    from fusion_bench.queries.filter_queries import FilteredQueries

VOTE_EXAMPLES = base.format_examples(
    "fusion-bench queries vote generated.jsonl --documents docs.jsonl"
)


def vote_command(
    queries: shared.Generated,
    documents: shared.Documents,
    votes: shared.Votes = None,
    seed: shared.Seed = 0,
    json: base.JsonFlag = False,
) -> None:
    """Vote on generated queries: keep or drop, one key each, in random order.

    Every vote is saved at once; run the command again to go on. --json counts the votes, and asks
    for none.
    """
    from fusion_bench.errors import ConfigError
    from fusion_bench.io.json_objects import load_documents
    from fusion_bench.judge.terminal.keyboard import open_keyboard
    from fusion_bench.queries.filter_queries import read_generated
    from fusion_bench.queries.votes import list_open, read_votes, save_vote

    file = _votes_file(queries, votes)
    rows, texts = read_generated(queries), load_documents(documents)
    known = read_votes(file, [*rows]) if file.exists() else {}
    if json:
        kept = sum(known.values())
        print_json({"file": file, "queries": len(rows), "votes": len(known), "kept": kept})
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            f'votes need a terminal: elsewhere write {file}, one {{"id": "…", "keep": true}} a line'
        )
    with open_keyboard(sys.stdin.fileno()) as keyboard:
        for name in list_open([*rows], known, seed=seed):
            keep = _ask_vote(
                keyboard,
                rows[name]["text"],
                texts.get(rows[name]["written_from"]),
                f"{len(known) + 1} of {len(rows)}",
            )
            if keep is None:
                break
            save_vote(file, name, keep=keep)
            known[name] = keep
    echo(f"{len(known):,} votes in {file}, {sum(known.values()):,} to keep")


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


FILTER_EXAMPLES = base.format_examples(
    "fusion-bench queries filter generated.jsonl --documents docs.jsonl "
    "--llm model=gpt-5-mini --out queries.jsonl"
)


def filter_command(
    queries: shared.Generated,
    documents: shared.Documents,
    out: shared.Out,
    llm: shared.Model,
    votes: shared.Votes = None,
    store: shared.Store = shared.DEFAULT_STORE,
    json: base.JsonFlag = False,
) -> None:
    """Keep the generated queries that meet the criteria which agree best with your votes.

    A model says of each query whether its document answers it, whether it is clear, and whether a
    person could have typed it. Your votes decide which of these count.
    """
    from fusion_bench.cli.progress.bar import progress_bar
    from fusion_bench.errors import ConfigError
    from fusion_bench.io.json_objects import load_documents
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.queries.filter_queries import (
        check_queries,
        filter_queries,
        read_generated,
        require_votes,
        write_kept,
    )
    from fusion_bench.queries.votes import read_votes

    file = _votes_file(queries, votes)
    refuse_inputs((file,))
    rows, texts = read_generated(queries), load_documents(documents)
    if not file.exists():
        words = "fusion-bench queries vote {} --documents {}"
        command = words.format(quote(str(queries)), quote(str(documents)))
        raise ConfigError(f"{file}: no votes yet: give some with '{command}'")
    known = read_votes(file, [*rows])
    require_votes(known)
    sources = {
        name: texts[row["written_from"]].text if row["written_from"] in texts else ""
        for name, row in rows.items()
    }
    with progress_bar() as progress:
        checks = check_queries(
            {name: row["text"] for name, row in rows.items()},
            sources,
            shared.build_settings(llm),
            store,
            lambda done, total: progress("checking queries", done, total),
        )
    result = filter_queries(checks, known)
    write_kept(rows, result.kept, out)
    if json:
        print_json(result)
        return
    _echo_result(result)
    echo_written([out])


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
