"""Who looked at the held-out queries before a campaign opens."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from fusion_bench.campaign.state import list_campaigns
from fusion_bench.errors import ConfigError
from fusion_bench.io.campaign_ledger import CampaignEvent, HeldOutDigests
from fusion_bench.tune import looks as tuning_looks
from fusion_bench.util.files import read_regular_text, show_path

#: What every stored record begins with.
RECORD = re.compile(r'\s*\{\s*"format":\s*"fusion-bench-')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: Most files that a message names.
MOST_NAMED = 3


def refuse_known(path: Path, held_out: HeldOutDigests, events: Sequence[CampaignEvent]) -> None:
    """Refuse queries and groups that another campaign holds out, open or closed.

    Args:
        path: The ledger.
        held_out: The queries of the new campaign.
        events: Of the ledger.

    Raises:
        ConfigError: Names the campaign.
    """
    for event in events:
        other = event.held_out
        if other is not None and _share_queries(held_out, other):
            raise ConfigError(
                f"{path}: campaign {event.campaign} of {event.date[:10]} holds out some of these "
                "queries or their groups, and no query is held out twice: add newly judged queries "
                "in a split 'test', with the old ones in 'dev'"
            )


def _share_queries(first: HeldOutDigests, second: HeldOutDigests) -> bool:
    pairs = (
        (first.queries, second.queries),
        (first.judgments, second.judgments),
        (first.groups, second.groups),
    )
    return any(not set(a).isdisjoint(b) for a, b in pairs)


def find_earlier_looks(
    experiment: Path,
    dataset: Path,
    name: str,
    queries: Collection[str],
    held_out: HeldOutDigests,
    events: Sequence[CampaignEvent],
) -> list[str]:
    """Looks of ``tune``, reports, baselines and campaigns that tell of a held-out query.

    Args:
        experiment: Its file; reports are looked for beside its folder, and in the working folder.
        dataset: The ``dataset.yaml``, beside which the looks are counted.
        name: Of the dataset.
        queries: Ids of the held-out queries.
        held_out: Their digests.
        events: Of the ledgers; a campaign tells everything about its tuning queries.
    """
    ledger = dataset.parent / tuning_looks.LEDGER_NAME
    counted = tuning_looks.read_looks(ledger)
    digests = (*held_out.queries, *held_out.judgments)
    related = tuning_looks.related_looks(counted, digests)
    found = [f"{show_path(ledger)}: {len(related)} looks of tune"] if related else []
    found += [
        f"they are tuning queries of campaign {campaign}"
        for campaign, state in list_campaigns(events).items()
        if not set(state.plan.tuning).isdisjoint(held_out.queries)
    ]
    folders = dict.fromkeys([experiment.parent.parent / "reports", Path("reports")])
    files = {path.resolve() for folder in folders for path in folder.rglob("*.json")}
    records = [show_path(path) for path in sorted(files) if _holds(path, name, set(queries))]
    more = len(records) - MOST_NAMED
    return [*found, *records[:MOST_NAMED], *([f"and {more} more records"] if more > 0 else [])]


def _holds(path: Path, name: str, queries: Collection[str]) -> bool:
    """Whether a stored record is about the dataset, and names one of the queries."""
    with suppress(OSError, ValueError):
        text = read_regular_text(path)
        if RECORD.match(text):
            texts = {match[1] for match in TEXT.finditer(text)}
            return name in texts and not texts.isdisjoint(queries)
    return False
