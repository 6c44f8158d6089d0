"""Print the JSON Schema of a stored record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo_written
from fusion_bench.config.options import Argument, Folder
from fusion_bench.errors import UnknownNameError
from fusion_bench.util.files import require_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

#: Record → its model, or what builds its schema.
RECORDS: Final = {
    "report": "fusion_bench.evaluation.report_file:Report",
    "tuning": "fusion_bench.report.tuning_records:TuningReport",
    "gate": "fusion_bench.gate.result:GateVerdict",
    "baseline": "fusion_bench.gate.baseline:Baseline",
    "diagnosis": "fusion_bench.explain.diagnosis:Diagnosis",
    "lint": "fusion_bench.checks.lint:LintReport",
    "export": "fusion_bench.evaluation.export_records:ExportReport",
    "campaign-status": "fusion_bench.campaign.records:CampaignStatus",
    "campaign-answer": "fusion_bench.campaign.records:CampaignAnswer",
    "campaign-report": "fusion_bench.campaign.records:CampaignReport",
    "search": "fusion_bench.schema.search_records:build_search_schema",
}


class SchemaOptions(base.JsonOptions):
    """Options of ``schema``; a schema is JSON anyway, and with ``--json`` errors are JSON too.

    Attributes:
        out: Write NAME.json of every record into this folder.
    """

    name: Annotated[str, Argument("NAME", help=f"{', '.join(RECORDS)}.")] | None = None
    out: Folder | None = None


@base.single_command()
def command(options: SchemaOptions) -> None:
    """Print the JSON Schema of a stored record, or of the search records that applications log.

    The installed package has the same files in fusion_bench/schemas.

    Examples:
        fusion-bench schema report
        fusion-bench schema --out schemas
    """
    from fusion_bench.io.outputs import write_outputs

    name = options.name
    if options.out is not None:
        base.refuse(options, "does not go with --out", "name")
        folder = require_folder(options.out)
        schemas = {f"{record}.json": render_schema(record).encode() for record in RECORDS}
        echo_written(write_outputs(folder, schemas))
    elif name is None:
        raise typer.BadParameter(f"name one of {', '.join(RECORDS)}", param_hint="NAME")
    elif name not in RECORDS:
        raise UnknownNameError("record", name, RECORDS)
    else:
        typer.echo(render_schema(name), nl=False)


def render_schema(record: str) -> str:
    """The JSON Schema of a record, as the text of its file."""
    from importlib import import_module
    from json import dumps

    from fusion_bench.config.record_schemas import build_schema

    module, _, name = RECORDS[record].partition(":")
    source: type[BaseModel] | Callable[[], dict[str, Any]] = getattr(import_module(module), name)
    schema = build_schema(source) if isinstance(source, type) else source()
    return f"{dumps(schema, indent=1, ensure_ascii=False)}\n"
