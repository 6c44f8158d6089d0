"""Options that the commands of queries share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fusion_bench.retrieve.answers.chat import ChatSettings

Out = Annotated[Path, typer.Option(help="JSON Lines to write.", metavar="FILE")]
Generated = Annotated[
    Path, typer.Argument(help="Queries that 'queries generate' wrote.", metavar="QUERIES")
]
Documents = Annotated[Path, typer.Option(help="JSON Lines with id and text.", metavar="FILE")]
Model = Annotated[
    list[str],
    typer.Option(
        help="Set a key of the model: model=gpt-5-mini, base_url=http://…, key=VARIABLE; "
        "repeatable.",
        metavar="KEY=VALUE",
    ),
]
Seed = Annotated[int, typer.Option(help="Of the draw.", min=0)]
Votes = Annotated[
    Path | None,
    typer.Option(help="JSON Lines of votes. Default: QUERIES.votes.jsonl.", metavar="FILE"),
]
Store = Annotated[
    Path, typer.Option(help="SQLite file that keeps what the model answered.", metavar="FILE")
]
DEFAULT_STORE = Path("reports/queries/answers.sqlite")


def build_settings(llm: Sequence[str]) -> ChatSettings:
    """The model that ``--llm`` describes.

    Raises:
        ConfigError: A key breaks a rule.
    """
    from fusion_bench.config.models import parse_model
    from fusion_bench.experiment.method_options import set_options
    from fusion_bench.retrieve.answers.chat import ChatSettings

    data: Mapping[str, Any] = set_options({}, llm, option="--llm", example="model=gpt-5-mini")
    return parse_model(ChatSettings, data, lambda path: f"--llm {'.'.join(map(str, path))}")
