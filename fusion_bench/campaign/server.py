"""A campaign behind HTTP: judgments and log stay here, and whoever asks gets answers alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fusion_bench.campaign.ask import CANDIDATE, AskedCandidate, Referee
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import FusionBenchError
from fusion_bench.util.local_requests import MOST_BYTES, parse_body, read_body, refuse

log = logging.getLogger(__name__)


class AskRequest(StrictModel):
    """``POST /ask``.

    Attributes:
        system: One system; null = the baseline.
        changes: ``KEY=VALUE`` each: values that replace its own.
        allow_lists: Whether it may read lists that the dataset has got since.
        explain: List the relevant documents that it loses.
    """

    system: dict[str, Any] | None = None
    changes: tuple[str, ...] = ()
    allow_lists: bool = False
    explain: bool = False

    @property
    def candidate(self) -> AskedCandidate:
        """What is asked about."""
        source = None if self.system is None else Source(Path(CANDIDATE), self.system)
        return AskedCandidate(source, self.changes, self.allow_lists, may_import=False)


@dataclass(frozen=True, eq=False)
class CampaignEndpoints:
    """The endpoints of one campaign; one ask is answered after the other.

    Attributes:
        referee: Answers.
    """

    referee: Referee
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    async def describe(self, _: Request) -> Response:
        """How the campaign stands."""
        return await run_in_threadpool(self._answer, self._read_status)

    async def ask(self, request: Request) -> Response:
        """The answer to a candidate."""
        body = await read_body(request)
        if body is None:
            return refuse(413, f"body: at most {MOST_BYTES:,} bytes")
        return await run_in_threadpool(self._answer, lambda: self._ask(body))

    def _read_status(self) -> dict[str, Any]:
        return self.referee.read_status().model_dump(mode="json")

    def _ask(self, body: bytes) -> dict[str, Any]:
        asked = parse_model(AskRequest, parse_body(body))
        return self.referee.ask(asked.candidate, explain=asked.explain).model_dump(mode="json")

    def _answer(self, work: Callable[[], dict[str, Any]]) -> Response:
        try:
            with self._lock:
                return JSONResponse(work())
        except FusionBenchError as error:
            return refuse(400, str(error))
        except Exception:  # an answer of one word: the traceback goes to this terminal alone
            log.exception("an ask failed")
            return refuse(500, "internal error: see the server's terminal")


def create_application(referee: Referee) -> Starlette:
    """The application of a campaign, without a guard."""
    endpoints = CampaignEndpoints(referee)
    return Starlette(
        routes=[
            Route("/status", endpoints.describe),
            Route("/ask", endpoints.ask, methods=["POST"]),
        ]
    )
