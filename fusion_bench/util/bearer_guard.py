"""Middleware of servers on this machine: only programs that have the token may ask."""

from __future__ import annotations

import os
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fusion_bench.errors import ConfigError
from fusion_bench.util.loopback import Access

#: Fewest characters of a token that somebody chose: a shorter one can be guessed.
LEAST_TOKEN: Final = 16


def read_access(port: int, variable: str) -> Access:
    """Who may ask: whoever has the token of an environment variable, or a new one.

    Args:
        port: Where the server listens.
        variable: Name of the variable.

    Raises:
        ConfigError: Its token is too short.
    """
    given = os.environ.get(variable, "")
    if given and (len(given) < LEAST_TOKEN or not given.isascii()):
        raise ConfigError(f"{variable}: at least {LEAST_TOKEN} ASCII characters are needed")
    return Access(port, token=given) if given else Access(port)


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
