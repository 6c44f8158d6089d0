"""Show why a document ranks where it does, term by term."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.options import Argument, Depth, Name, Number, Option


class ExplainOptions(base.NamedExperimentOptions):
    """Options of ``explain``.

    Attributes:
        query: Id of a judged query.
        document: Id of a document. Default: the top documents.
        system: System to explain. Default: the gated system, or the baseline.
        dataset: Dataset, if the experiment has several.
        against: Document to compare with. Default: the one ranked next above.
        top: Number of documents to list.
        trial: Which file of each list that has several.
    """

    experiment: base.ExperimentFile
    query: Annotated[str, Argument("QUERY")]
    document: Annotated[str, Argument("DOCUMENT")] | None = None
    system: Name | None = None
    dataset: Name | None = None
    against: Annotated[str, Option(metavar="DOCUMENT")] | None = None
    top: Depth = 10
    trial: Number = 1


@base.single_command()
def command(options: ExplainOptions) -> None:
    """Show every term of a document's score, and why it ranks above or below another.

    Examples:
        fusion-bench explain experiments/mine.yaml q17
        fusion-bench explain experiments/mine.yaml q17 doc42 --system rrf-v2
        fusion-bench explain experiments/mine.yaml q17 doc42 --against doc7 --json
    """
    from fusion_bench.cli.application.next_steps import after_explain
    from fusion_bench.evaluation.explanation import explain_query
    from fusion_bench.report.explanation_page import explain_documents

    document = options.document
    if document is None:
        base.refuse(options, "needs a DOCUMENT to compare with", "against")
    if not (options.experiment.exists() or options.experiment.is_symlink()):
        raise typer.BadParameter(
            f"{options.experiment}: no such file: the experiment comes before the query",
            param_hint="EXPERIMENT",
        )
    with options.read() as (parsed, source):
        explanation = options.call(
            explain_query, parsed, source, options.query, folders=options.folders
        )
    records, page = options.call(explain_documents, explanation, document)
    if document is None:
        steps = after_explain(explanation, options.dataset, options)
        page = replace(page, next_steps=tuple(steps))
    print_result(records, page, options)
