"""What a leaderboard stores: a cell for each collection and row, and the file that holds them all.

A cell is taken from its file where its fingerprint is the one that would be computed now: over the
data, the version of the code, the configuration and the budget. Anything else is computed again.
No text and no id of a query or document is stored: of queries and groups the digests, salted with
the fingerprint of the data.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from fusion_bench._version import ENGINE, __version__
from fusion_bench.config.json_records import StoredRecord, read_stored
from fusion_bench.errors import DataError
from fusion_bench.stats.unjudged import JudgmentKind
from fusion_bench.util.digests import digest_json
from fusion_bench.util.files import write_atomic

#: Raised when a cell has other fields or is computed in another way.
FORMAT_VERSION = 4
#: Kinds of rows that are tuned out of fold.
TUNED = ("tuned", "tuned pair", "chosen")
#: File of a collection that says what its rows have in common.
HEAD = "collection.json"
#: The file with all collections.
FILE = "leaderboard.json"


class TuningBudget(StoredRecord):
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


class SystemRow(StoredRecord):
    """What is evaluated.

    Attributes:
        name: Unique in the collection.
        kind: Part of the leaderboard: ``method``, ``tuned``, ``engine`` …
        config: Keys of the system; empty for the floor and for what is chosen.
        candidates: Keys of fixed systems, one of which is chosen out of fold: the row itself, or
            what the tuned row is compared with. The first is the default.
        rival: Keys of the tuned system that the tuned row is compared with.
    """

    name: str
    kind: str
    config: dict[str, Any] = Field(default_factory=dict)
    candidates: tuple[dict[str, Any], ...] = ()
    rival: dict[str, Any] = Field(default_factory=dict)


class Cell(StoredRecord):
    """A finished row of a collection.

    Attributes:
        fingerprint: Of all that decides the values.
        row: What was evaluated.
        values: Measure → value of each query, in the order of the collection's queries.
        chosen: Parameters, or keys of the candidate, that were chosen without each fold.
        null: Of a tuned row: mean ÷ standard error of its difference in each flip of signs, where
            the parameters are chosen anew.
        coverage: Of a reranked row: the share of the documents to order that the reranker scored.
        skipped: Why there are no values; such a cell is computed again in the next run.
        seconds: That it took.
        digest: Of all the above but the seconds.
    """

    fingerprint: str
    row: SystemRow
    values: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    chosen: tuple[dict[str, Any], ...] = ()
    null: tuple[float, ...] = ()
    coverage: float | None = None
    skipped: str = ""
    seconds: float = 0.0
    digest: str = ""

    @property
    def content_digest(self) -> str:
        """What ``digest`` is of a cell that nobody changed."""
        content = self.model_dump(mode="json", exclude={"digest", "seconds"})
        return digest_json(content)

    def seal(self) -> Cell:
        """The cell with its digest."""
        return self.model_copy(update={"digest": self.content_digest})


class ListFacts(StoredRecord):
    """A fused list.

    Attributes:
        name: Of the source.
        depth: The greatest rank that is used.
        is_scored: Its scores say more than the ranks do: they are not the same at every rank.
    """

    name: str
    depth: int
    is_scored: bool


class CollectionHead(StoredRecord):
    """What the rows of a collection have in common.

    Attributes:
        name: Of the collection.
        fingerprint: Of its data.
        queries: Digests of the ids of the Q evaluated queries.
        groups: Digest of the group of each query.
        lists: The fused lists.
        reranker: Name of the rerank list; empty = none.
        judgments: What they allow to be said of unjudged documents.
        judge: Who gave them.
        rows: The rows of this run.
        budget: Of its tuned rows.
    """

    name: str
    fingerprint: str
    queries: tuple[str, ...]
    groups: tuple[str, ...]
    lists: tuple[ListFacts, ...]
    reranker: str = ""
    judgments: JudgmentKind
    judge: str
    rows: tuple[SystemRow, ...]
    budget: TuningBudget


class StoredCollection(StoredRecord):
    """A collection with its finished cells.

    Attributes:
        head: What the cells have in common.
        cells: In the order of the rows.
    """

    head: CollectionHead
    cells: tuple[Cell, ...]


class Leaderboard(StoredRecord):
    """All collections, as ``leaderboard.json`` has them.

    Attributes:
        format: Tells the file from others.
        format_version: See above.
        version: Of the package.
        engine: Of its numbers.
        clusters: Collection → the cluster of collections that count as one effect.
        collections: In order of name.
    """

    format: Literal["fusion_bench leaderboard"] = "fusion_bench leaderboard"
    format_version: Literal[4] = 4
    version: str = __version__
    engine: int = ENGINE
    clusters: dict[str, str] = Field(default_factory=dict)
    collections: tuple[StoredCollection, ...]


def cell_path(folder: Path, name: str) -> Path:
    """The file of a row in a collection's folder."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return folder / f"{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')}-{digest}.json"


def encode_record(record: StoredRecord) -> bytes:
    """A cell, a head or a leaderboard as JSON."""
    return record.model_dump_json().encode() + b"\n"


def write_record(path: Path, record: StoredRecord) -> None:
    """Write a cell or a head, whole or not at all."""
    write_atomic(path, encode_record(record))


def read_cell(path: Path) -> Cell | None:
    """A stored cell; None = there is none, or it is damaged or of another format."""
    try:
        cell = Cell.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None
    return cell if cell.digest == cell.content_digest else None


def read_head(folder: Path) -> CollectionHead | None:
    """The head of a collection's folder; None as for a cell."""
    try:
        return CollectionHead.model_validate_json((folder / HEAD).read_bytes())
    except (OSError, ValidationError, UnicodeDecodeError):
        return None


def read_leaderboard(path: Path) -> Leaderboard:
    """Read and check a ``leaderboard.json``.

    Raises:
        DataError: No leaderboard of this format, or a cell whose digest is not that of its content.
    """
    leaderboard = read_stored(
        path, Leaderboard, what="leaderboard", remedy="run python -m benchmarks.leaderboard again"
    )
    for each in leaderboard.collections:
        for cell in each.cells:
            if cell.digest != cell.content_digest:
                raise DataError(
                    f"{path}: {each.head.name}: {cell.row.name}: the digest is not that of the "
                    "cell, which was changed after it was computed"
                )
    return leaderboard
