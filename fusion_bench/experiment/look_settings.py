"""The settings of ``tune: looks:``: where looks at held-out queries are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fusion_bench.config.models import StrictModel


class LookSettings(StrictModel):
    """How looks at held-out queries are counted.

    Attributes:
        count: False = looks are not counted, and the report says so.
        file: The ledger; a relative path starts at the experiment's file. None = ``looks.jsonl``
            beside the ``dataset.yaml``.
        max_queries: Plan of looks at frozen numbers, declared before the first look: held-out
            queries of the last one. None = no plan; each look has the level of its number.
    """

    count: bool = True
    file: Path | None = None
    max_queries: Annotated[int, Field(ge=1)] | None = None
