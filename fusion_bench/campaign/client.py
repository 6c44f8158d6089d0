"""Asks of a campaign, answered by this process or by the server of another one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from fusion_bench.campaign.ask import CANDIDATE, AskedCandidate, Referee
from fusion_bench.campaign.records import CampaignAnswer, CampaignStatus
from fusion_bench.campaign.state import CampaignPaths
from fusion_bench.config.models import Model, StrictModel, make_config_error
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.experiment.system import System
from fusion_bench.util.http_client import open_client

#: The environment variable of the token, of server and client.
TOKEN: Final = "FUSION_BENCH_CAMPAIGN_TOKEN"  # noqa: S105 - its name
#: Bytes by which an answer about many tuning queries may be longer than what is sent.
MOST_ANSWER: Final = 50_000_000


class CampaignServerSettings(StrictModel):
    """How a served campaign is called.

    Attributes:
        key: The environment variable of its token.
        timeout: Seconds for an ask.
        concurrency: Most concurrent connections.
        allow_http: Whether the token may be sent to another machine without TLS.
    """

    key: str = TOKEN
    timeout: float = 600.0
    concurrency: int = 1
    allow_http: bool = False


@dataclass(frozen=True)
class ServedCampaign:
    """A campaign that another process serves.

    Attributes:
        address: Such as ``http://127.0.0.1:8123``.
    """

    address: str

    def read_status(self) -> CampaignStatus:
        """How it stands; raises FusionBenchError where it cannot be asked."""
        return self._request(CampaignStatus, "GET", "/status", None)

    def ask(self, candidate: AskedCandidate, *, explain: bool = False) -> CampaignAnswer:
        """Ask, as :meth:`~fusion_bench.campaign.ask.Referee.ask` does."""
        source = candidate.source
        body = {
            "system": None if source is None else source.data,
            "changes": candidate.changes,
            "allow_lists": candidate.allow_lists,
            "explain": explain,
        }
        return self._request(CampaignAnswer, "POST", "/ask", body)

    def _request(self, model: type[Model], method: str, path: str, body: object) -> Model:
        """Return the answer of the server; raises FusionBenchError if there is none."""
        settings = CampaignServerSettings()
        if not os.environ.get(settings.key):
            raise ConfigError(
                f"{self.address}: the environment variable {settings.key} is not set: set it to "
                "the token that 'fusion-bench campaign serve' has or printed"
            )

        async def send() -> Any:  # noqa: ANN401 - JSON
            async with open_client(self.address, settings) as client:
                return await client.request_json(method, path, body, extra_bytes=MOST_ANSWER)

        data = asyncio.run(send())
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise ProviderError(
                f"{self.address}{path}: malformed answer: {make_config_error(error, data)}: name "
                "the address that 'fusion-bench campaign serve' of this version prints",
                kind="malformed",
            ) from None


def find_referee(place: str) -> Referee | ServedCampaign:
    """Find the referee of a campaign, here or behind an address.

    Args:
        place: Its folder, or the address of a served one.

    Raises:
        DataError: There is no such folder.
    """
    if place.startswith(("http://", "https://")):
        return ServedCampaign(place)
    return Referee(CampaignPaths.read(Path(place)))


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
