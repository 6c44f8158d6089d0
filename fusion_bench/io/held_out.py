"""The queries that open campaigns hold out: known by digests, and dropped from what is read.

A file belongs to the campaigns of every ledger in its folder or above it, with links followed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from fusion_bench.data.grouped_rows import CategoricalIds, rows_of, to_offsets
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.fingerprints import judgment_texts, query_digest
from fusion_bench.util.digests import hash_values
from fusion_bench.util.files import resolve_path
from fusion_bench.util.formatting import pluralize

if TYPE_CHECKING:
    from fusion_bench.io.campaign_ledger import CampaignEvent, HeldOutDigests

log = logging.getLogger(__name__)
#: The name of the ledger, beside a dataset's ``dataset.yaml``.
LEDGER_NAME: Final = "campaigns.jsonl"
Table = TypeVar("Table", bound=Qrels | Run)
Value = TypeVar("Value")
#: Campaign → what it holds out.
OpenCampaigns: TypeAlias = "Mapping[str, HeldOutDigests]"
#: The judgments of a query that has no relevant document.
NOTHING_RELEVANT: Final = "[]"


@dataclass(frozen=True)
class _Reader:
    """A reader that may see held-out queries; ``by`` is None for the referee of the campaigns."""

    by: str | None
    command: str


_reader: ContextVar[_Reader | None] = ContextVar("reader", default=None)
#: What this process has logged: ledger, campaign, who, command.
_logged: set[tuple[Path, str, str, str]] = set()
#: The campaigns of which this process has said that they hide queries.
_announced: set[str] = set()


@contextmanager
def _read_as(reader: _Reader) -> Iterator[None]:
    token = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(token)


@contextmanager
def read_everything() -> Iterator[None]:
    """Read held-out queries like any other.

    For the referee of the campaigns, and for commands that make lists for all queries.
    """
    with _read_as(_Reader(None, "")):
        yield


@contextmanager
def show_held_out(by: str, command: str = "Python") -> Iterator[None]:
    """Read the queries that open campaigns hold out, which ends their guarantee for good.

    What is read inside is logged in the ledger beside each dataset, once a command.

    Args:
        by: Who asks for it.
        command: What shows them.

    Raises:
        ConfigError: Nobody is named.
    """
    if not by.strip():
        raise ConfigError("held-out queries are shown to somebody with a name, and none was given")
    with _read_as(_Reader(by, command)):
        yield


def find_open_campaigns(paths: Iterable[Path]) -> OpenCampaigns:
    """The campaigns that hold out queries of some files from whoever reads them now.

    Args:
        paths: The files.

    Raises:
        DataError: A ledger beside them is damaged, or lacks what git has of it.
        FusionBenchError: A ledger to which an override belongs cannot be written.
    """
    reader = _reader.get()
    campaigns: dict[str, HeldOutDigests] = {}
    if reader is not None and reader.by is None:
        return campaigns
    for ledger, events in read_ledgers(paths):
        held_out = list_open_campaigns(events)
        if reader is not None:
            _log_override(ledger, reader, held_out)
            continue
        campaigns |= held_out
        for campaign in held_out.keys() - _announced:
            _announced.add(campaign)
            name = ledger.parent.name
            log.warning("%s: queries that campaign %s holds out are not read", name, campaign)
    return campaigns


def read_ledgers(paths: Iterable[Path]) -> Iterator[tuple[Path, list[CampaignEvent]]]:
    """The ledgers to whose campaigns some files belong, with their events.

    Args:
        paths: The files.

    Raises:
        DataError: A ledger is damaged, or lacks what git has of it.
    """
    given = list(paths)
    places = dict.fromkeys([*map(resolve_path, given), *(path.absolute() for path in given)])
    folders = dict.fromkeys(folder for place in places for folder in (place, *place.parents))
    ledgers = (folder / LEDGER_NAME for folder in folders)
    # Unlike Path.is_file, this takes paths that no file can have. The path with links is kept: git
    # is asked about what they replaced, too.
    files = {resolve_path(each): each for each in ledgers if os.path.isfile(each)}  # noqa: PTH113
    for ledger in [files[place] for place in sorted(files)]:
        from fusion_bench.io.campaign_ledger import check_committed, read_events

        events = read_events(ledger)
        check_committed(ledger, events)
        yield ledger, events


def list_open_campaigns(events: Iterable[CampaignEvent]) -> dict[str, HeldOutDigests]:
    """The campaigns of a ledger that are not closed, with what each holds out."""
    campaigns: dict[str, HeldOutDigests] = {}
    for event in events:
        if event.held_out is not None:
            campaigns[event.campaign] = event.held_out
        elif event.event == "close":
            campaigns.pop(event.campaign, None)
    return campaigns


def _describe_campaign(campaign: str) -> str:
    """That a campaign hides queries, and what to do."""
    return (
        f"campaign {campaign} is open, and the queries that it holds out are not read "
        "('fusion-bench campaign close' ends it; 'fusion-bench --show-held-out NAME' reads them, "
        "and ends its guarantee)"
    )


def _log_override(ledger: Path, reader: _Reader, campaigns: Iterable[str]) -> None:
    by = str(reader.by)
    new = {name for name in campaigns if (ledger, name, by, reader.command) not in _logged}
    if new:
        from fusion_bench.io.campaign_ledger import append_events, make_event

        facts = {"by": by, "command": reader.command}
        events = [make_event(name, "override", **facts) for name in sorted(new)]
        append_events(ledger, lambda _: events)
        _logged.update((ledger, name, by, reader.command) for name in new)


@dataclass(frozen=True)
class HeldOut:
    """What open campaigns hold out of a dataset.

    Attributes:
        counts: Campaign → how many judged queries it holds out.
        queries: The ids of all that is held out, judged or not.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    queries: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def match(
        cls,
        campaigns: OpenCampaigns,
        qrels: Qrels,
        ids: Iterable[str] = (),
        records: Mapping[str, Query] | None = None,
    ) -> HeldOut:
        """The queries whose id, judgments or group a campaign holds out, and those grouped with.

        Args:
            campaigns: What they hold out.
            qrels: The judgments.
            ids: Queries beside the judged ones.
            records: What is known of the queries, by id.
        """
        if not campaigns:
            return cls()
        known = records or {}
        digests = {query: {query_digest(query)} for query in (*qrels.queries, *ids, *known)}
        for query, text in judgment_texts(qrels).items():
            if text != NOTHING_RELEVANT:
                digests[query].add(query_digest(text))
        groups = {query: each.group for query, each in known.items() if each.group}
        counts, queries = {}, set[str]()
        for campaign, held_out in campaigns.items():
            contents, names = {*held_out.queries, *held_out.judgments}, {*held_out.groups}
            chosen = {query for query, each in digests.items() if not contents.isdisjoint(each)}
            joined = {groups[query] for query in chosen if query in groups}
            joined |= {name for name in {*groups.values()} if query_digest(name) in names}
            chosen |= {query for query, name in groups.items() if name in joined}
            counts[campaign] = len(chosen.intersection(qrels.queries))
            queries |= chosen
        return cls(counts, frozenset(queries))

    @property
    def reason(self) -> str:
        """Why they are not read."""
        return _describe_campaign(min(self.counts))

    def drop_from(self, table: Table) -> Table:
        """Judgments or a list without the queries that are held out.

        Raises:
            DataError: No judged query is left.
        """
        keep = np.array([query not in self.queries for query in table.queries], dtype=bool)
        if keep.all():
            return table
        if isinstance(table, Qrels) and not keep.any():
            raise DataError(f"no judged query is left: {self.reason}")
        rows = rows_of(table.offsets, np.flatnonzero(keep))
        documents = CategoricalIds(table.documents[rows], table.vocabulary).drop_unused()
        parts: dict[str, Any] = {
            "queries": tuple(self.drop_keys(dict.fromkeys(table.queries))),
            "offsets": to_offsets(np.diff(table.offsets)[keep]),
            "vocabulary": documents.vocabulary,
            "documents": documents.codes,
        }
        if isinstance(table, Qrels):
            return replace(table, **parts, grades=table.grades[rows])
        switch = table.switch and replace(table.switch, queries=table.switch.queries - self.queries)
        parts |= {"switch": switch, "bare": self.drop_keys(table.bare)}
        return replace(table, **parts, scores=table.scores[rows], ranks=table.ranks[rows])

    def drop_keys(self, known: Mapping[str, Value]) -> dict[str, Value]:
        """What is known by query, without the queries that are held out."""
        return {query: value for query, value in known.items() if query not in self.queries}

    def change_key(self, key: str | None) -> str | None:
        """The key in the cache of what lacks these queries; None = it is not kept."""
        return key and (hash_values("held out", key, sorted(self.queries)) if self.queries else key)


def refuse_copy(path: Path) -> None:
    """Refuse to write every query of a file elsewhere while campaigns hold out some.

    Raises:
        ConfigError: One does.
    """
    for campaign in find_open_campaigns([path]):
        raise ConfigError(
            f"{path} has queries that cannot be written: {_describe_campaign(campaign)}"
        )


def refuse_learning(path: Path, system: str) -> None:
    """Refuse to train a system for lists of all queries while campaigns hold out some.

    Args:
        path: The ``dataset.yaml``.
        system: Its name.

    Raises:
        ConfigError: One does.
    """
    for campaign in find_open_campaigns([path]):
        raise ConfigError(
            f"system {system!r} is trained, and would learn from queries that are held out: "
            f"{_describe_campaign(campaign)}: name a system that is not trained"
        )


def refuse_held_out(paths: Iterable[Path], queries: Iterable[str], where: str) -> None:
    """Refuse stored values of queries that are held out now.

    Args:
        paths: Files of the dataset.
        queries: Those that have values.
        where: What holds the values, for the message.

    Raises:
        DataError: One of them is held out.
    """
    held_out = HeldOut.match(find_open_campaigns(paths), Qrels.without_judgments(()), queries)
    if held_out.queries:
        count = pluralize(len(held_out.queries), "query")
        raise DataError(f"{where} holds values of {count}, but {held_out.reason}: make it again")


def find_held_out(
    path: Path, ids: Iterable[str], records: Mapping[str, Query] | None = None
) -> HeldOut:
    """The queries of a file without judgments that open campaigns hold out.

    Args:
        path: The file.
        ids: Its queries.
        records: What is known of them, by id.
    """
    return HeldOut.match(find_open_campaigns([path]), Qrels.without_judgments(()), ids, records)
