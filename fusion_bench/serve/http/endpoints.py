"""The answers to the page's requests: JSON in, JSON out, and an error is one line."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fusion_bench.config.models import StrictModel
from fusion_bench.errors import FusionBenchError
from fusion_bench.serve.console.held_out_verdict import ask_held_out
from fusion_bench.serve.console.save_experiment import NameTakenError, save_setting
from fusion_bench.serve.console.session import ConsoleSession
from fusion_bench.serve.http.guard import refuse
from fusion_bench.serve.http.requests import (
    MOST_BYTES,
    AnswerRequest,
    QueryRequest,
    SaveRequest,
    VerdictRequest,
    parse_request,
)

R = TypeVar("R", bound=StrictModel)

log = logging.getLogger(__name__)


class UnconfirmedError(FusionBenchError):
    """A look would be spent, and nobody said that it may be."""


@dataclass(frozen=True, eq=False)
class ConsoleEndpoints:
    """The endpoints of one session.

    Attributes:
        session: What they answer from.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.
    """

    session: ConsoleSession
    reports: Path

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/console", self.describe),
            _post_route("/api/answer", AnswerRequest, self._answer),
            _post_route("/api/query", QueryRequest, self._describe_query),
            _post_route("/api/verdict", VerdictRequest, self._ask_held_out),
            _post_route("/api/save", SaveRequest, self._save),
        ]

    async def describe(self, _: Request) -> Response:
        """What a page needs before its first answer."""
        return JSONResponse(await run_in_threadpool(self.session.describe))

    def _answer(self, request: AnswerRequest) -> dict[str, Any]:
        return self.session.answer(request.setting, request.previous)

    def _describe_query(self, request: QueryRequest) -> dict[str, Any]:
        return self.session.query_details(request.query, request.setting, request.against)

    def _ask_held_out(self, request: VerdictRequest) -> dict[str, Any]:
        if not request.confirm:
            raise UnconfirmedError("confirm: must be true, since this spends a look")
        with self.session.lock:
            return ask_held_out(self.session, request.setting, self.reports)

    def _save(self, request: SaveRequest) -> dict[str, Any]:
        with self.session.lock:
            return save_setting(
                self.session,
                request.setting,
                request.name,
                overwrite=request.overwrite,
                write=request.write,
            )


def _post_route(path: str, model: type[R], work: Callable[[R], dict[str, Any]]) -> Route:
    """A route that takes a JSON body and answers with JSON."""

    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            return refuse(415, "content-type: application/json is needed")
        body = await _read_body(request)
        if body is None:
            return refuse(413, f"body: at most {MOST_BYTES:,} bytes")
        return await run_in_threadpool(_answer_body, path, model, work, body)

    return Route(path, endpoint, methods=["POST"])


def _answer_body(
    path: str, model: type[R], work: Callable[[R], dict[str, Any]], body: bytes
) -> Response:
    try:
        return JSONResponse(work(parse_request(model, body)))
    except (NameTakenError, UnconfirmedError) as error:
        return refuse(409, str(error))
    except FusionBenchError as error:
        return refuse(400, str(error))
    except Exception:  # the page goes on; the traceback goes to the terminal
        log.exception("%s failed", path)
        return refuse(500, "internal error: see the terminal of 'fusion-bench serve'")


async def _read_body(request: Request) -> bytes | None:
    """The body; None where it is too long, without reading on."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)
