"""Asks of a campaign from Python: a held-out set that answers with one word."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fusion_bench.campaign.ask import CANDIDATE, AskedCandidate
from fusion_bench.campaign.client import find_referee
from fusion_bench.campaign.records import CampaignAnswer, CampaignStatus
from fusion_bench.config.yaml_files import Source
from fusion_bench.experiment.system import System


def ask_campaign(
    campaign: str | os.PathLike[str],
    candidate: Mapping[str, Any] | System | str | os.PathLike[str] | None = None,
    *,
    changes: Sequence[str] = (),
    allow_lists: bool = False,
    explain: bool = False,
) -> CampaignAnswer:
    """Ask whether a candidate may ship, as ``fusion-bench campaign ask`` does.

    Args:
        campaign: Its folder, or the address of a served one.
        candidate: One system: a mapping, a ``System``, or a YAML file; None = the baseline.
        changes: ``KEY=VALUE`` each, such as ``fusion.k=20``: values that replace its own.
        allow_lists: Let it read lists that the dataset has got since; the log names them.
        explain: List the relevant documents that it loses.

    Returns:
        ``answer`` is ``ship``, ``keep`` or ``closed``; ``tuning`` tells all about the tuning
        queries.

    Raises:
        FusionBenchError: The candidate breaks a rule, or the campaign cannot be asked.
    """
    if isinstance(candidate, System):
        candidate = candidate.resolved_config
    if isinstance(candidate, Mapping):
        source = Source(Path(CANDIDATE), dict(candidate))
        asked = AskedCandidate(source, tuple(changes), allow_lists)
    else:
        path = None if candidate is None else Path(candidate)
        asked = AskedCandidate.read(path, changes, allow_lists=allow_lists)
    return find_referee(os.fspath(campaign)).ask(asked, explain=explain)


def campaign_status(campaign: str | os.PathLike[str]) -> CampaignStatus:
    """Return the state of a campaign: asks left, the baseline to beat, whether its level holds.

    Args:
        campaign: Its folder, or the address of a served one.

    Raises:
        FusionBenchError: It is not there, or its ledger was edited.
    """
    return find_referee(os.fspath(campaign)).read_status()
