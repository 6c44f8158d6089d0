"""Predict the type of each query: local, global, relationship or hybrid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json, print_tables
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.options import Amount, Argument, Changes, File

if TYPE_CHECKING:
    from fusion_bench.models.query_types import Predictions
    from fusion_bench.report.page import Table


class ClassifyOptions(base.JsonOptions):
    """Options of ``classify``.

    Attributes:
        queries: JSON Lines with id and text.
        out: The same lines with predicted_type and predicted_confidence.
        method: Words and patterns, or a language model behind a chat endpoint.
        change: Set a key of the endpoint, such as model=NAME, base_url=http://…,
            price.per_million_tokens=1; repeatable.
        records: Also write QueryClassification records, one a line.
        store: SQLite file that keeps the model's answers.
        max_cost: Stop before the price exceeds this.
    """

    queries: Annotated[Path, Argument("QUERIES")]
    out: File
    method: Literal["rules", "chat"] = "rules"
    change: Changes = ()
    records: File | None = None
    store: File = Path("reports/classify/answers.sqlite")
    max_cost: Amount | None = None


@base.single_command(ExitCode.DEGRADED)
def command(options: ClassifyOptions) -> None:
    """Predict the type of each query: local, global, relationship or hybrid.

    API keys come from environment variables. A stored answer of the model is not paid for twice.
    A query that cannot be classified is hybrid; it is named, and the exit code is 4.

    Examples:
        fusion-bench classify queries.jsonl --out predicted.jsonl
        fusion-bench classify queries.jsonl --out predicted.jsonl --method chat --set model=NAME
    """
    from fusion_bench.models.query_types import RuleClassifier, classify_file

    if options.method == "rules":
        base.refuse(options, "does not go with --method rules", "change", "max_cost")
        predictions = options.call(classify_file, options.queries, RuleClassifier())
        ledger = None
    else:
        predictions, ledger = _ask_model(options)
    if options.json:
        print_json({"predictions": predictions, "ledger": ledger})
    else:
        _print_predictions(predictions, ledger)
    if predictions.failures:
        raise typer.Exit(ExitCode.DEGRADED)


def _ask_model(options: ClassifyOptions) -> tuple[Predictions, dict[str, Any]]:
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.models.answer_stores import ScoreStore
    from fusion_bench.models.chat_classifier import ChatClassifier, make_client
    from fusion_bench.models.query_types import classify_file

    client = make_client(options.change, is_limited=options.max_cost is not None)
    with closing(ScoreStore(options.store)) as opened, progress_bar() as show:
        on_progress = base.show_price(show, "classifying")
        classifier = options.call(ChatClassifier, client, opened, on_progress=on_progress)
        predictions = options.call(classify_file, options.queries, classifier)
        return predictions, classifier.ledger


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
    from fusion_bench.report.page import make_record_table

    rows = [{"predicted type": name, "queries": count} for name, count in predictions.types.items()]
    yield make_record_table("Predicted types", rows)
    if predictions.confusion:
        crossed = [{"given type": name, **row} for name, row in predictions.confusion.items()]
        yield make_record_table("Given and predicted types", crossed)
