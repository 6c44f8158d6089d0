"""Predict the type of each query: local, global, relationship or hybrid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import echo, echo_written, print_json, print_tables
from fusion_bench.cli.application.process import ExitCode, describe_exit_codes

if TYPE_CHECKING:
    from fusion_bench.models.query_types import Predictions
    from fusion_bench.report.page import Table

command = base.command_app()


class ClassifierName(StrEnum):
    """What classifies."""

    RULES = "rules"
    CHAT = "chat"


@command.command(
    epilog=base.format_examples(
        "fusion-bench classify queries.jsonl --out predicted.jsonl",
        "fusion-bench classify queries.jsonl --out predicted.jsonl --method chat --set model=NAME",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.DEGRADED),
)
def classify_command(
    queries: Annotated[
        Path, typer.Argument(help="JSON Lines with id and text.", metavar="QUERIES")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The same lines with predicted_type and predicted_confidence.", metavar="FILE"
        ),
    ],
    method: Annotated[
        ClassifierName,
        typer.Option(help="Words and patterns, or a language model behind a chat endpoint."),
    ] = ClassifierName.RULES,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set a key of the endpoint, such as model=NAME, base_url=http://…, "
            "price.per_million_tokens=1; repeatable.",
            metavar="KEY=VALUE",
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(help="Also write QueryClassification records, one a line.", metavar="FILE"),
    ] = None,
    store: Annotated[
        Path, typer.Option(help="SQLite file that keeps the model's answers.", metavar="FILE")
    ] = Path("reports/classify/answers.sqlite"),
    max_cost: Annotated[
        float | None, typer.Option(help="Stop before the price exceeds this.", min=0)
    ] = None,
    json: base.JsonFlag = False,
) -> None:
    """Predict the type of each query: local, global, relationship or hybrid.

    API keys come from environment variables. A stored answer of the model is not paid for twice.
    A query that cannot be classified is hybrid; it is named, and the exit code is 4.
    """
    from fusion_bench.models.query_types import RuleClassifier, classify_file

    if method is ClassifierName.RULES:
        base.refuse_options("--method rules", {"--set": change, "--max-cost": max_cost})
        predictions, ledger = classify_file(queries, RuleClassifier(), out, records=records), None
    else:
        predictions, ledger = _ask_model(queries, out, records, change or [], store, max_cost)
    if json:
        print_json({"predictions": predictions, "ledger": ledger})
    else:
        _print_predictions(predictions, ledger)
    if predictions.failures:
        raise typer.Exit(ExitCode.DEGRADED)


def _ask_model(
    queries: Path,
    out: Path,
    records: Path | None,
    changes: list[str],
    store: Path,
    max_cost: float | None,
) -> tuple[Predictions, dict[str, Any]]:
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.models.chat_classifier import ChatClassifier, make_client
    from fusion_bench.models.query_types import classify_file
    from fusion_bench.models.score_store import ScoreStore

    client = make_client(changes, is_limited=max_cost is not None)
    with closing(ScoreStore(store)) as opened, progress_bar() as show:
        classifier = ChatClassifier(
            client, opened, max_cost=max_cost, on_progress=_describe_progress(show)
        )
        predictions = classify_file(queries, classifier, out, records=records)
        return predictions, classifier.ledger


def _describe_progress(show: Callable[[str, int, int], None]) -> Callable[[int, int, float], None]:
    def show_progress(done: int, total: int, spent: float) -> None:
        show(f"classifying, price so far {spent:.4f}" if spent else "classifying", done, total)

    return show_progress


def _print_predictions(predictions: Predictions, ledger: Mapping[str, Any] | None) -> None:
    print_tables(*build_tables(predictions))
    if predictions.agreement is not None:
        echo(f"predicted as given: {predictions.agreement:.1%} of the queries with a type")
    if ledger is not None:
        echo(f"{ledger['calls']:,} calls in all runs, {ledger['retries']:,} retries")
    if predictions.failures:
        name, reason = next(iter(predictions.failures.items()))
        count = f"{len(predictions.failures):,} queries without an answer"
        echo(f"warning: {count} are hybrid (for example {name!r}: {reason})")
    echo_written(predictions.files)


def build_tables(predictions: Predictions) -> Iterator[Table]:
    """Queries by predicted type, and by given type where there is one."""
    from fusion_bench.report.table import make_record_table

    rows = [{"predicted type": name, "queries": count} for name, count in predictions.types.items()]
    yield make_record_table("Predicted types", rows)
    if predictions.confusion:
        crossed = [{"given type": name, **row} for name, row in predictions.confusion.items()]
        yield make_record_table("Given and predicted types", crossed)
