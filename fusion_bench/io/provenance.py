"""Where a rerank list comes from: the record that ``fusion-bench rerank`` writes beside it.

A list whose scores are not all the asked provider's says so here, query by query, and
:meth:`fusion_bench.io.dataset.Dataset.degraded` hands that on.

Format history:
    1   first version
    2   ``unread``: where scores could not be read; version 1 is read too
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.held_out import HeldOut, find_held_out
from fusion_bench.util import files
from fusion_bench.util.formatting import pluralize

FORMAT_VERSION: Literal[2] = 2
#: Stands in the place of a provider where none answered and the fused order was kept.
FUSED_ORDER = "fused order"


class ListMeta(StrictModel):
    """One rerank list's provenance.

    Attributes:
        format: Always ``fusion-bench-rerank-list``.
        format_version: See the history in this module.
        list_sha256: SHA-256 of the list file as it was written.
        created: When, UTC, ISO 8601.
        dataset: The dataset whose queries were asked.
        system: Whose fused list gave the candidates.
        depth: How many of them a query and trial.
        score_space: What the written numbers mean.
        asked: The provider that was asked first, as ``provider/model``.
        providers: ``provider/model`` → the queries whose scores it gave; ``fused order`` → the
            queries that nobody scored, which have no row in the list.
        degraded: Query → why its scores are not, or not all, those of ``asked``.
        unread: Query → 1-based positions of candidates whose score could not be read in the
            provider's answer; they have 0.5 in the list.
        settings: The resolved configuration.
        ledger: What the run cost and how long it took, see ``rerank.ledger``; ``trials`` = of the
            system's lists, where a query has the candidates of several.
    """

    format: Literal["fusion-bench-rerank-list"] = "fusion-bench-rerank-list"
    format_version: Literal[1, 2] = FORMAT_VERSION
    list_sha256: str
    created: str
    dataset: str
    system: str
    depth: int
    score_space: ScoreSpace
    asked: str
    providers: dict[str, tuple[str, ...]]
    degraded: dict[str, str] = Field(default_factory=dict)
    unread: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    settings: dict[str, Any] = Field(default_factory=dict)
    ledger: dict[str, Any] = Field(default_factory=dict)

    @property
    def unread_count(self) -> int:
        """Number of scores that could not be read."""
        return sum(map(len, self.unread.values()))

    @property
    def unscored(self) -> tuple[str, ...]:
        """The degraded queries that ``asked`` did not score; the others have unread scores."""
        scored = set(self.providers.get(self.asked, ()))
        return tuple(q for q in self.degraded if q not in scored or q not in self.unread)

    def drop_queries(self, held_out: HeldOut) -> ListMeta:
        """The record without the queries that are held out."""
        providers = {name: dict.fromkeys(queries) for name, queries in self.providers.items()}
        return self.model_copy(
            update={
                "providers": {n: tuple(held_out.drop_keys(q)) for n, q in providers.items()},
                "degraded": held_out.drop_keys(self.degraded),
                "unread": held_out.drop_keys(self.unread),
            }
        )

    def describe_degradation(self, name: str) -> str:
        """Why nothing should be decided by the list of this name, in one line."""
        what = f"{pluralize(len(self.degraded), 'query')} without the scores of {self.asked}"
        if not self.unscored:
            what = f"{pluralize(self.unread_count, 'score')} of {self.asked} could not be read"
        query = self.unscored[0] if self.unscored else min(self.degraded)
        return (
            f"rerank list {name!r} is degraded: {what} (for example {query!r}: "
            f"{self.degraded[query]}): score them again, or say 'degraded: accept'"
        )


def describe_unread(unread: Mapping[str, Sequence[int]], *, limit: int = 5) -> str:
    """Queries and positions in a few words: ``q1: 3, 7; q2: 1; 4 more of the queries``.

    Args:
        unread: Query → 1-based positions.
        limit: Most queries that are named.
    """
    named = [f"{query}: {', '.join(map(str, ids))}" for query, ids in unread.items()]
    more = len(named) - limit
    return "; ".join(named[:limit] + ([f"{more} more of the queries"] if more > 0 else []))


def meta_path(path: Path) -> Path:
    """Where the provenance of a list stands: ``scores.jsonl`` → ``scores.jsonl.meta.json``."""
    return path.with_name(f"{path.name}.meta.json")


def write_with_meta(path: Path, data: bytes, meta: BaseModel) -> None:
    """Write a file and its provenance, which never stands beside other data.

    Raises:
        FusionBenchError: They cannot be written.
    """
    record = f"{meta.model_dump_json(indent=1)}\n".encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace_files(path.parent, {meta_path(path).name: record, path.name: data})
    except OSError as error:
        raise files.make_write_error(path, error) from error


def read_meta(path: Path) -> ListMeta | None:
    """The provenance of a rerank list; None where nothing is known of it.

    Args:
        path: The list.

    Raises:
        DataError: The record is damaged, or belongs to another list.
    """
    beside = meta_path(path)
    if not beside.exists():
        return None
    try:
        meta = parse_model(ListMeta, json.loads(files.read_regular_text(beside)))
        given = hashlib.sha256(files.read_regular(path)).hexdigest()
    except ConfigError as error:
        raise DataError(f"{beside}: {error}: score the list again") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{beside}: not a provenance record: {files.explain_error(error)}"
        ) from None
    if given != meta.list_sha256:
        raise DataError(
            f"{beside}: written for another list (SHA-256 {meta.list_sha256[:12]}…, and "
            f"{path.name} has {given[:12]}…): copy both files, or delete the record if the list is "
            "no longer the one that was scored"
        )
    queries = {query for each in meta.providers.values() for query in each}
    return meta.drop_queries(find_held_out(path, {*queries, *meta.degraded, *meta.unread}))
