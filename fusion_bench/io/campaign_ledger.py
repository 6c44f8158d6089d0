"""The ledger of campaigns beside a dataset: every event of every campaign of it.

The file is replaced as a whole under a lock, so that concurrent runs wait for each other and a
killed one leaves the old file or the new one. Each line names the one before it: a line that is
edited, removed, moved or merged in from another branch is refused. A missing end is found where git
has the file, see :func:`check_committed`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from fusion_bench.config.models import StrictModel
from fusion_bench.io.chained_ledger import LedgerFormat, digest_line, follow_line
from fusion_bench.util.digests import add_line_digest
from fusion_bench.util.files import lock_folder, write_atomic

Digest = Annotated[str, Field(pattern="^[0-9a-f]+$")]


class HeldOutDigests(StrictModel):
    """The queries that a campaign holds out, each of the three sorted.

    Attributes:
        queries: Digests of their ids.
        judgments: Digests of what is judged relevant for each, by which a query with another id is
            known.
        groups: Digests of the names of their groups.
    """

    queries: tuple[Digest, ...]
    judgments: tuple[Digest, ...]
    groups: tuple[Digest, ...]


class CampaignEvent(StrictModel):
    """One line of the ledger. No held-out value is ever in it.

    Attributes:
        version: Of the layout of a line.
        event: What happened. An ``ask`` is written before anything is computed, its ``answer``
            before it is told.
        campaign: Id of the campaign.
        date: When, ISO 8601.
        held_out: Of ``open``: what is held out.
        plan: Of ``open``: what the campaign froze.
        number: Of ``ask`` and ``answer``: which ask, from 1.
        config: Of ``ask``: the candidate's resolved configuration.
        lists: Of ``ask``: lists of the candidate that were not there at the start.
        answer: Of ``answer``.
        by: Of ``override`` and ``close``: who.
        command: Of ``override``: what showed the held-out queries.
        line: Its number in the file; None = not written yet.
        previous: Digest of the line before it.
    """

    version: Literal[1] = 1
    event: Literal["open", "ask", "answer", "override", "close"]
    campaign: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    date: str
    held_out: HeldOutDigests | None = None
    plan: dict[str, JsonValue] | None = None
    number: Annotated[int, Field(ge=1)] | None = None
    config: dict[str, JsonValue] | None = None
    lists: tuple[str, ...] = ()
    answer: Literal["ship", "keep"] | None = None
    by: str | None = None
    command: str | None = None
    line: Annotated[int, Field(ge=1)] | None = None
    previous: tuple[Digest, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the whole event."""
        return digest_line(self.dump())

    def dump(self) -> str:
        """Its line without a digest."""
        return self.model_dump_json(exclude_none=True)


def make_event(
    campaign: str,
    kind: Literal["open", "ask", "answer", "override", "close"],
    **fields: Any,  # noqa: ANN401 - those of the event
) -> CampaignEvent:
    """An event of now; ``fields`` are what its kind has."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return CampaignEvent(event=kind, campaign=campaign, date=date, **fields)


CAMPAIGNS = LedgerFormat(
    CampaignEvent.model_validate_json,
    "ledger of campaigns",
    "without it the answers of a campaign guarantee nothing",
    is_linear=True,
)
#: File → its text and its events when it was read last.
_read: dict[str, tuple[str, tuple[CampaignEvent, ...]]] = {}


def read_events(path: Path) -> list[CampaignEvent]:
    """The events of a ledger, in its order; empty where there is no such file.

    Of a file that was read before only the lines that were added since are parsed.

    Raises:
        DataError: A line is no event, or does not follow the line before it; names file and line.
    """
    return _parse_text(CAMPAIGNS.read_text(path), str(path))


def _parse_text(text: str, where: str) -> list[CampaignEvent]:
    known, events = _read.get(where, ("", ()))
    if text == known:
        return list(events)
    is_longer = known.endswith("\n") and text.startswith(known)
    parsed = CAMPAIGNS.parse_text(text, where, events if is_longer else ())
    _read[where] = text, tuple(parsed)
    return parsed


def append_events(
    path: Path, make: Callable[[list[CampaignEvent]], list[CampaignEvent]]
) -> list[CampaignEvent]:
    """Add events to a ledger, one process at a time.

    Args:
        path: The file; made with its folder if need be.
        make: The events so far → those to add; each gets its place.

    Returns:
        All events.

    Raises:
        DataError: A line is no event.
        FusionBenchError: The file cannot be written.
    """
    with lock_folder(path.parent):
        text = CAMPAIGNS.read_text(path)
        events = _parse_text(text, str(path))
        lines = [text if not text or text.endswith("\n") else f"{text}\n"]
        for event in make(list(events)):
            place = follow_line(events[-1] if events else None)
            events.append(event.model_copy(update=place))
            lines.append(f"{add_line_digest(events[-1].dump())}\n")
        if len(lines) > 1:
            write_atomic(path, "".join(lines).encode())
            _read[str(path)] = "".join(lines), tuple(events)
    return events


def check_committed(path: Path, events: list[CampaignEvent]) -> None:
    """Refuse a ledger of campaigns as :meth:`LedgerFormat.check_committed` does."""
    CAMPAIGNS.check_committed(path, events, _parse_text)
