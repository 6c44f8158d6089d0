"""Middleware of servers on this machine: only programs that have the token may ask."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fusion_bench.util.loopback import Access


class BearerGuard:
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
        refusal = self._find_refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _find_refusal(self, headers: Headers) -> JSONResponse | None:
        if not self._access.is_own_host(headers.get("host")):
            return JSONResponse({"error": "host: this is not the address of this server"}, 403)
        if not self._access.is_own_origin(headers.get("origin")):
            return JSONResponse({"error": "origin: pages of other sites may not ask"}, 403)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._access.accept_token(token):
            advice = {"error": "token: send the header 'Authorization: Bearer TOKEN'"}
            return JSONResponse(advice, 401, {"www-authenticate": "Bearer"})
        return None
