"""What is known of the making of a pulled dataset: the record ``pull.json`` in its folder.

Format history:
    1   first version
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.pull.store import Answer
from fusion_bench.util.files.regular_files import read_regular
from fusion_bench.util.formatting import pluralize

FORMAT_VERSION: Final = 1
RECORD_FILE: Final = "pull.json"
#: From so many queries on, equally long lists are no accident.
MANY_QUERIES: Final = 10
PERCENTILES: Final = (50, 95, 99)


class ListRecord(StrictModel):
    """One list.

    Attributes:
        name: Its name.
        is_fused: Whether it is the engine's own fused answer.
        score: What its scores are.
        depth: Most hits per query that were asked for.
        queries: Queries that were asked.
        empty: Queries without a hit.
        hits: Hits over all queries.
        longest: Hits of the longest answer.
        surplus: Hits beyond the depth, which were dropped.
        unordered: Queries whose scores do not fall from the first hit to the last.
        rising: Queries whose scores rise from the first hit to the last.
        retries: Calls that failed before an answer came.
        latency_ms: Percentiles of the calls that were answered, each the time of one call.
    """

    name: str
    is_fused: bool
    score: str
    depth: int
    queries: int
    empty: int
    hits: int
    longest: int
    surplus: int
    unordered: int
    rising: int
    retries: int
    latency_ms: dict[str, float]


class PullRecord(StrictModel):
    """How a dataset was pulled.

    Attributes:
        format: Always ``fusion-bench-pull``.
        format_version: See the history in this module.
        created: When, UTC, ISO 8601.
        engine: Name of the connector.
        settings: What the lists depend on, without keys.
        fingerprint: Of the index, as the engine states it.
        is_changed: Whether the index changed while it was asked.
        queries: Queries that were pulled.
        asked: Questions that the last run asked; the others were stored by runs before it.
        lists: One record a list.
        documents: Documents whose texts were pulled; None = none were asked for.
        without_text: Documents of which the engine gave no text.
        failed: Query → why it was left out.
        dropped: Lists that the pull before this one made, and this one did not: the dataset names
            them no more.
        is_replay_outdated: Whether the experiment of an earlier pull, which stays, replays another
            window or limit.
    """

    format: Literal["fusion-bench-pull"] = "fusion-bench-pull"
    format_version: Literal[1] = FORMAT_VERSION
    created: str
    engine: str
    settings: dict[str, Any]
    fingerprint: dict[str, Any]
    is_changed: bool
    queries: int
    asked: int
    lists: tuple[ListRecord, ...]
    documents: int | None = None
    without_text: int = 0
    failed: dict[str, str] = Field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    is_replay_outdated: bool = False

    @property
    def is_degraded(self) -> bool:
        """Whether a query was left out, or the index changed meanwhile."""
        return bool(self.failed) or self.is_changed


def summarize_list(
    name: str, answers: Sequence[Answer], *, depth: int, is_fused: bool, score: str
) -> ListRecord:
    """The record of a list.

    Args:
        name: Its name.
        answers: One a query; at least one.
        depth: Most hits per query that were asked for.
        is_fused: Whether it is the engine's own fused answer.
        score: What its scores are.
    """
    return ListRecord(
        name=name,
        is_fused=is_fused,
        score=score,
        depth=depth,
        queries=len(answers),
        empty=sum(not answer.hits for answer in answers),
        hits=sum(len(answer.hits) for answer in answers),
        longest=max(len(answer.hits) for answer in answers),
        surplus=sum(answer.surplus for answer in answers),
        unordered=sum(not is_falling(answer) for answer in answers),
        rising=sum(is_rising(answer) for answer in answers),
        retries=sum(answer.retries for answer in answers),
        latency_ms=measure_latency([answer.latency_ms for answer in answers]),
    )


def read_list_names(folder: Path) -> set[str]:
    """The lists that the pull into a folder made; none where no record can be read."""
    try:
        record = PullRecord.model_validate_json(read_regular(folder / RECORD_FILE))
    except (OSError, ValueError):
        return set()
    return {each.name for each in record.lists if each.hits}


def is_falling(answer: Answer) -> bool:
    """Whether no hit scores higher than the one before it."""
    scores = [hit.score for hit in answer.hits]
    return all(left >= right for left, right in pairwise(scores))


def is_rising(answer: Answer) -> bool:
    """Whether no hit scores lower than the one before it, and not all score the same."""
    scores = [hit.score for hit in answer.hits]
    return len(set(scores)) > 1 and all(left <= right for left, right in pairwise(scores))


def measure_latency(milliseconds: Sequence[float]) -> dict[str, float]:
    """Percentiles in milliseconds, each the time of one call: ``{"p50": …}``."""
    values = np.percentile(milliseconds, PERCENTILES, method="inverted_cdf")
    return {f"p{p}": round(float(v), 3) for p, v in zip(PERCENTILES, values, strict=True)}


def list_notes(record: PullRecord) -> list[str]:
    """One sentence for each thing of a pull that is worth knowing."""
    notes = [note for each in record.lists for note in _list_notes(each)]
    if record.without_text:
        notes.append(f"{record.without_text:,} documents came without a text.")
    if record.is_changed:
        notes.append(
            "degraded: the index changed while it was asked, so that lists of one query may be of "
            "two states of it: pull again with --start-over."
        )
    if record.failed:
        query, reason = next(iter(record.failed.items()))
        count = pluralize(len(record.failed), "query")
        notes.append(
            f"degraded: {count} left out (for example {query}: {reason}). The same command without "
            "--start-over asks them again, and no other."
        )
    if record.is_replay_outdated:
        notes.append(
            "experiment.yaml stays, and its replay has the window and the limit of an earlier "
            "pull: correct depth and top_k, or delete the file and pull again with --start-over."
        )
    if record.dropped:
        notes.append(
            f"{', '.join(record.dropped)}: of the pull before this one, so dataset.yaml names it "
            "no more; the file stays."
        )
    return notes


def _list_notes(record: ListRecord) -> Sequence[str]:
    notes = []
    if record.hits == 0:
        notes.append(f"{record.name} returned nothing for any query, and is left out.")
    elif record.empty:
        rest = f"{record.empty} of {record.queries} queries"
        notes.append(f"{record.name} returned nothing for {rest}.")
    if record.hits and record.longest * (record.queries - record.empty) == record.hits:
        notes += _note_short_lists(record)
    if record.surplus:
        notes.append(f"{record.name} sent {record.surplus:,} hits beyond its depth: dropped.")
    if record.rising and record.rising >= record.queries - record.empty:
        notes.append(
            f"The scores of {record.name} rise from the first hit to the last, as distances do: "
            "turn their sign where you can. The ranks are the engine's."
        )
    elif record.unordered:
        notes.append(
            f"The scores of {record.name} do not fall from hit to hit for {record.unordered} of "
            f"{record.queries} queries. The ranks are the engine's (rank_from: column)."
        )
    return notes


def _note_short_lists(record: ListRecord) -> Sequence[str]:
    """What equally long lists that are shorter than the depth hint at."""
    if record.longest == record.depth or record.queries < MANY_QUERIES:
        return ()
    return (
        f"{record.name} returned {pluralize(record.longest, 'document')} for each query, and "
        f"{record.depth:,} were asked for: the index holds no more, or a limit of the engine's own "
        "applies.",
    )
