"""Requests to a server on this machine: who may ask, what a body may hold."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fusion_bench.errors import ConfigError
from fusion_bench.util.formatting import is_encodable
from fusion_bench.util.json_text import parse_strict_json
from fusion_bench.util.loopback import HOSTS, Access, run_application

#: Fewest characters of a token that somebody chose: a shorter one can be guessed.
LEAST_TOKEN: Final = 16
#: Bytes of a body, a hundred times what is sent.
MOST_BYTES: Final = 200_000


def read_access(port: int, variable: str) -> Access:
    """Read who may ask: the owner of an environment variable's token, or of a new one.

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


class LoopbackGuard:
    """Middleware that answers what it refuses: other hosts, pages of other sites.

    Args:
        app: What it guards.
        access: Who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        refusal = None
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            hosts = headers.getlist("host")
            if len(hosts) != 1 or not self._access.is_own_host(hosts[0]):
                refusal = refuse(403, "host: this is not the address of this server")
            elif not self._access.is_own_origin(headers.get("origin")):
                refusal = refuse(403, "origin: pages of other sites may not ask")
            else:
                refusal = self._check_caller(str(scope["path"]), headers)
        await (refusal or self._app)(scope, receive, send)

    def _check_caller(self, path: str, headers: Headers) -> JSONResponse | None:
        """What a caller is refused with who is on this machine; None = it may ask."""
        raise NotImplementedError


def refuse(status: int, message: str) -> JSONResponse:
    """An error as every route answers it: one line."""
    return JSONResponse({"error": message}, status_code=status)


async def read_body(request: Request) -> bytes | None:
    """The body; None where it is too long, without reading on."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


def parse_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        ConfigError: It is none.
    """
    try:
        data = parse_strict_json(body)
    except ValueError as error:
        raise ConfigError(f"body: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError("body: a JSON object is needed")
    if not is_encodable(json.dumps(data, ensure_ascii=False)):
        raise ConfigError("body: a text holds half of a surrogate pair: send valid Unicode")
    return data


class BearerGuard(LoopbackGuard):
    """One that answers programs with the token alone."""

    def _check_caller(self, path: str, headers: Headers) -> JSONResponse | None:  # noqa: ARG002 - all paths are guarded
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._access.accept_token(token):
            advice = {"error": "token: send the header 'Authorization: Bearer TOKEN'"}
            return JSONResponse(advice, 401, {"www-authenticate": "Bearer"})
        return None


def serve_guarded(
    application: ASGIApp,
    listener: socket.socket,
    announce: Callable[[str, str | None], None],
    *,
    variable: str,
    path: str = "",
    has_lifespan: bool = False,
) -> None:
    """Serve whoever has the token, until a signal ends the process.

    Args:
        application: What answers.
        listener: A listening socket on 127.0.0.1.
        announce: Called with the address, and with the token where no variable holds it.
        variable: Name of the environment variable that may hold the token.
        path: What is served, below the address.
        has_lifespan: Whether the application has work of its own before the first request.

    Raises:
        ConfigError: The variable's token is too short.
    """
    access = read_access(listener.getsockname()[1], variable)
    token = None if os.environ.get(variable) else access.token
    announce(f"http://{HOSTS[0]}:{access.port}{path}", token)
    run_application(BearerGuard(application, access), listener, has_lifespan=has_lifespan)
