"""Checks of every request before its route sees it, and headers of every answer."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fusion_bench.serve.http.access import Access

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


class Guard:
    """Middleware that answers what it refuses.

    Args:
        app: What it guards.
        access: Who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_with_headers)
        else:
            await refusal(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.is_own_host(hosts[0]):
            return refuse(403, "host: this is not the address of this console")
        if not self._access.is_own_origin(headers.get("origin")):
            return refuse(403, "origin: pages of other sites may not ask")
        is_api = str(scope["path"]).startswith("/api/")
        if is_api and not self._access.has_session(headers):
            return refuse(403, "no session: open the address that 'fusion-bench serve' printed")
        return None


def refuse(status: int, message: str) -> JSONResponse:
    """An error as every route answers it: one line."""
    return JSONResponse({"error": message}, status_code=status)
