"""Stored results: one JSON file for each collection and row, written whole or not at all.

A cell is taken from its file where its fingerprint is the one that would be computed now: over the
data, the version of the code, the configuration and the budget. Anything else is computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from fusion_bench._version import ENGINE, __version__
from fusion_bench.config.models import StrictModel
from fusion_bench.stats.comparison import JudgmentKind
from fusion_bench.util.files import write_atomic

#: Raised when a cell has other fields or is computed in another way.
FORMAT_VERSION = 3
#: Kinds of rows that are tuned out of fold.
TUNED = ("tuned", "tuned pair")
#: File of a collection that says what its rows have in common.
HEAD = "collection.json"


class Budget(StrictModel):
    """How much tuning a tuned row gets.

    Attributes:
        trials: Random ones, the same for all folds; the default is one more.
        folds: Each query is evaluated with parameters that the other folds chose.
        flips: Of the test that chooses anew in each.
        seed: Of the trials, the folds, the flips and the floor.
    """

    trials: int = Field(default=50, ge=2)
    folds: int = Field(default=5, ge=2)
    flips: int = Field(default=1_999, ge=39)
    seed: int = 7


class Row(StrictModel):
    """What is evaluated.

    Attributes:
        name: Unique in the collection.
        kind: Part of the leaderboard: ``method``, ``tuned``, ``engine`` …
        config: Keys of the system; empty for the floor.
    """

    name: str
    kind: str
    config: dict[str, Any] = Field(default_factory=dict)


class Cell(StrictModel):
    """A finished row of a collection.

    Attributes:
        format_version: See above.
        fingerprint: Of all that decides the values.
        row: What was evaluated.
        values: Measure → value of each query, in the order of the collection's queries.
        chosen: Parameters that were chosen without each fold.
        null: Of a tuned row: mean ÷ standard error of its difference in each flip of signs, where
            the parameters are chosen anew.
        skipped: Why there are no values; such a cell is computed again in the next run.
        seconds: That it took.
    """

    format_version: Literal[3] = 3
    fingerprint: str
    row: Row
    values: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    chosen: tuple[dict[str, Any], ...] = ()
    null: tuple[float, ...] = ()
    skipped: str = ""
    seconds: float = 0.0


class CollectionHead(StrictModel):
    """What the rows of a collection have in common.

    Attributes:
        name: Of the collection.
        fingerprint: Of its data.
        queries: Ids of the Q evaluated queries.
        groups: Group of each query.
        sources: Names of the fused lists.
        reranker: Name of the rerank list; empty = none.
        judgments: What they allow to be said of unjudged documents.
        rows: The rows of this run.
        budget: Of its tuned rows.
    """

    name: str
    fingerprint: str
    queries: tuple[str, ...]
    groups: tuple[str, ...]
    sources: tuple[str, ...]
    reranker: str = ""
    judgments: JudgmentKind
    rows: tuple[Row, ...]
    budget: Budget


def make_fingerprint(data: str, row: Row, resolved: Mapping[str, Any], budget: Budget) -> str:
    """SHA-256 over all that decides a cell.

    Args:
        data: Fingerprint of the dataset.
        row: What is evaluated.
        resolved: Its configuration with every default.
        budget: Counts for tuned rows alone; the seed for all.
    """
    limits = budget.model_dump() if row.kind in TUNED else {"seed": budget.seed}
    parts = [data, __version__, ENGINE, FORMAT_VERSION, row.model_dump(), resolved, limits]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def cell_path(folder: Path, name: str) -> Path:
    """The file of a row in a collection's folder."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return folder / f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}-{digest}.json"


def write_record(path: Path, record: StrictModel) -> None:
    """Write a cell or a head."""
    write_atomic(path, record.model_dump_json(indent=1).encode() + b"\n")


def read_cell(path: Path) -> Cell | None:
    """A stored cell; None = there is none, or it is damaged or of another format."""
    try:
        return Cell.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


def read_head(folder: Path) -> CollectionHead | None:
    """The head of a collection's folder; None as for a cell."""
    try:
        return CollectionHead.model_validate_json((folder / HEAD).read_bytes())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None
