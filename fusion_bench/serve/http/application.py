"""The application: the page, its files, and the endpoints behind the guard."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fusion_bench.report.html.assets_text import read_asset
from fusion_bench.serve.console.session import ConsoleSession
from fusion_bench.serve.http.access import Access
from fusion_bench.serve.http.endpoints import ConsoleEndpoints
from fusion_bench.serve.http.guard import Guard, refuse

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
    files = PageFiles(access)
    return Starlette(
        routes=[
            Route("/", files.answer_page),
            Route("/assets/{name}", files.answer_asset),
            *ConsoleEndpoints(session, reports).routes(),
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _answer_http_error},
    )


def read_assets() -> dict[str, bytes]:
    """The page's files by name, with those that it shares with ``report.html``."""
    folder = resources.files("fusion_bench.serve") / "assets"
    assets = {
        file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in TYPES
    }
    return assets | {Path(name).name: read_asset(name).encode() for name in SHARED}


@dataclass(frozen=True, eq=False)
class PageFiles:
    """The page and its files, which hold no data.

    Attributes:
        access: Who may open the page.
        assets: Name → content.
    """

    access: Access
    assets: dict[str, bytes] = field(default_factory=read_assets, repr=False)

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
