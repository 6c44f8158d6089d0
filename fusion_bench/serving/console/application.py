"""The console behind HTTP: the page, its files, endpoints behind a guard."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, StrictBool
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.errors import FusionBenchError
from fusion_bench.report.html.render import read_asset
from fusion_bench.serving.console.experiment_files import NameTakenError, save_setting
from fusion_bench.serving.console.held_out_verdict import ask_held_out
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.serving.console.setting import Name, Setting
from fusion_bench.util.local_requests import (
    MOST_BYTES,
    LoopbackGuard,
    parse_body,
    read_body,
    refuse,
)
from fusion_bench.util.loopback import Access

#: Everything comes from this server; nothing inline, no frame around it, no form.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class RequestGuard(LoopbackGuard):
    """Answers only the pages of the console's session, and limits what a page may do."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await super().__call__(scope, receive, send_with_headers)

    def _check_caller(self, path: str, headers: Headers) -> JSONResponse | None:
        if path.startswith("/api/") and not self._access.has_session(headers):
            return refuse(403, "no session: open the address that 'fusion-bench serve' printed")
        return None


R = TypeVar("R", bound=StrictModel)


class AnswerRequest(StrictModel):
    """``POST /api/answer``.

    Attributes:
        setting: The setting.
        previous: The one before it.
    """

    setting: Setting
    previous: Setting | None = None


class ExploreRequest(StrictModel):
    """``POST /api/explore``.

    Attributes:
        setting: The setting.
        path: The parameter of the slider that moved last.
    """

    setting: Setting
    path: Name | None = None


class QueryRequest(StrictModel):
    """``POST /api/query``.

    Attributes:
        query: Id of a tuning query.
        setting: The setting.
        against: What it is compared with; None = the baseline.
    """

    query: Name
    setting: Setting
    against: Setting | None = None


class VerdictRequest(StrictModel):
    """``POST /api/verdict``.

    Attributes:
        setting: The setting.
        confirm: Must be true: a look at the held-out queries is spent.
    """

    setting: Setting
    confirm: StrictBool = False


class SaveRequest(StrictModel):
    """``POST /api/save``.

    Attributes:
        setting: The setting.
        name: Of the file, without its suffix.
        overwrite: Whether a file of that name may be replaced.
        write: False = only show the text and the commands.
    """

    setting: Setting
    name: Annotated[str, Field(max_length=64)]
    overwrite: StrictBool = False
    write: StrictBool = True


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
            _post_route("/api/explore", ExploreRequest, self._explore),
            _post_route("/api/query", QueryRequest, self._show_query),
            _post_route("/api/verdict", VerdictRequest, self._ask_held_out),
            _post_route("/api/save", SaveRequest, self._save),
        ]

    async def describe(self, _: Request) -> Response:
        """Describe the session to a page before its first answer."""
        return JSONResponse(await run_in_threadpool(self.session.describe))

    def _answer(self, request: AnswerRequest) -> dict[str, Any]:
        return self.session.answer(request.setting, request.previous)

    def _explore(self, request: ExploreRequest) -> dict[str, Any]:
        return self.session.explore(request.setting, request.path)

    def _show_query(self, request: QueryRequest) -> dict[str, Any]:
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
        body = await read_body(request)
        if body is None:
            return refuse(413, f"body: at most {MOST_BYTES:,} bytes")
        return await run_in_threadpool(_answer_body, path, model, work, body)

    return Route(path, endpoint, methods=["POST"])


def _answer_body(
    path: str, model: type[R], work: Callable[[R], dict[str, Any]], body: bytes
) -> Response:
    try:
        return JSONResponse(work(parse_model(model, parse_body(body))))
    except (NameTakenError, UnconfirmedError) as error:
        return refuse(409, str(error))
    except FusionBenchError as error:
        return refuse(400, str(error))
    except Exception:  # the page goes on; the traceback goes to the terminal
        log.exception("%s failed", path)
        return refuse(500, "internal error: see the terminal of 'fusion-bench serve'")


PAGE: Final = "console.html"
#: Files of the report's page: its colors, and modules that know nothing of a report.
SHARED: Final = ("page.css", "js/dom.js", "js/numbers.js", "js/theme.js")
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


def create_application(session: ConsoleSession, access: Access, reports: Path) -> Starlette:
    """The application of a session.

    Args:
        session: What it answers from.
        access: Who may ask.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.
    """
    files = ConsoleFiles(access)
    return Starlette(
        routes=[
            Route("/", files.answer_page),
            Route("/assets/{name}", files.answer_asset),
            *ConsoleEndpoints(session, reports).routes(),
        ],
        middleware=[Middleware(RequestGuard, access=access)],
        exception_handlers={HTTPException: _answer_http_error},
    )


def _read_assets() -> dict[str, bytes]:
    """The page's files by name, with those that it shares with ``report.html``."""
    folder = resources.files("fusion_bench.serving.console") / "assets"
    assets = {
        file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in TYPES
    }
    return assets | {Path(name).name: read_asset(name).encode() for name in SHARED}


@dataclass(frozen=True, eq=False)
class ConsoleFiles:
    """The page and its files, which hold no data.

    Attributes:
        access: Who may open the page.
        assets: Name → content.
    """

    access: Access
    assets: dict[str, bytes] = field(default_factory=_read_assets, repr=False)

    async def answer_page(self, request: Request) -> Response:
        """The page; an address with a token brings the cookie."""
        is_new = self.access.accept_token(request.query_params.get("token"))
        if not is_new and not self.access.has_session(request.headers):
            text = "no valid token: open the address that 'fusion-bench serve' printed"
            return PlainTextResponse(f"error: {text}\n", status_code=403)
        response = Response(self.assets[PAGE], media_type=TYPES[".html"])
        if is_new:
            response.headers["set-cookie"] = self.access.set_cookie
        return response

    async def answer_asset(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params["name"]
        if name not in self.assets:
            return refuse(404, "no such file")
        return Response(self.assets[name], media_type=TYPES[Path(name).suffix])


async def _answer_http_error(_: Request, error: Exception) -> Response:
    """No such path, or another method than the path takes."""
    if not isinstance(error, HTTPException):
        return refuse(500, "internal error")
    return refuse(error.status_code, error.detail)
