"""Servers on this machine alone: their sockets, and the keys of whoever may ask them.

A page of another site must neither read nor send anything. The host name of a request has to be
this server's, which stops DNS rebinding; an ``Origin`` has to be this server's; and every answer
with data needs the cookie that the address with the token sets. The cookie is ``SameSite=Strict``
and not readable by scripts. Its name holds the port, since cookies of one host go to all of its
ports.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fusion_bench.errors import ConfigError
from fusion_bench.util.files import explain_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp

#: Names that stand for this machine alone.
HOSTS: Final = ("127.0.0.1", "localhost")
#: Seconds that open requests get when a server ends.
GRACE: Final = 1


def _new_token() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """The keys of one server.

    Attributes:
        port: Where it listens.
        token: In the address that is printed.
        session: In the cookie.
        single_use: In an address that another program is started with, where all users of the
            machine may see it; each opens the console once.
    """

    port: int
    token: str = field(default_factory=_new_token, repr=False)
    session: str = field(default_factory=_new_token, repr=False)
    single_use: set[str] = field(default_factory=set, repr=False)

    @property
    def address(self) -> str:
        """The address to open."""
        return self._with_token(self.token)

    def make_single_use_address(self) -> str:
        """Another address that opens the console once."""
        token = _new_token()
        self.single_use.add(token)
        return self._with_token(token)

    @property
    def cookie(self) -> str:
        """Name of the cookie."""
        return f"fusion_bench_{self.port}"

    @property
    def set_cookie(self) -> str:
        """The header that sets the cookie."""
        return f"{self.cookie}={self.session}; Path=/; HttpOnly; SameSite=Strict"

    def is_own_host(self, host: str | None) -> bool:
        """Whether a ``Host`` header names this server."""
        return host in {f"{name}:{self.port}" for name in HOSTS}

    def is_own_origin(self, origin: str | None) -> bool:
        """Whether an ``Origin`` header is absent, or names this server."""
        return origin is None or origin in {f"http://{name}:{self.port}" for name in HOSTS}

    def accept_token(self, token: str | None) -> bool:
        """Whether a token opens the console; one for a single use opens it no second time."""
        if token is None or not token.isascii():
            return False
        if secrets.compare_digest(token, self.token):
            return True
        if token in self.single_use:
            self.single_use.discard(token)
            return True
        return False

    def has_session(self, headers: Mapping[str, str]) -> bool:
        """Whether a request brings the cookie.

        Args:
            headers: Of the request, by name in lower case.
        """
        # Cookies of other programs on this host may hold anything: one by one, by name.
        pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        values = [value for name, _, value in pairs if name == self.cookie]
        return any(
            value.isascii() and secrets.compare_digest(value, self.session) for value in values
        )

    def _with_token(self, token: str) -> str:
        return f"http://{HOSTS[0]}:{self.port}/?token={token}"


def open_socket(port: int, *, option: str = "--port") -> socket.socket:
    """A listening socket on 127.0.0.1.

    Args:
        port: 0 = any that is free.
        option: What names the port, for messages.

    Raises:
        ConfigError: The port is taken, or may not be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOSTS[0], port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = explain_error(error).lower()
        raise ConfigError(
            f"{option} {port}: {reason}: choose another, or leave it out for a free one"
        ) from None
    return listener


def run_application(
    application: ASGIApp, listener: socket.socket, *, has_lifespan: bool = False
) -> None:
    """Serve until Ctrl-C or SIGTERM, which end the command as they end every other.

    Args:
        application: What answers; it logs what fails.
        listener: From :func:`open_socket`.
        has_lifespan: Whether the application has work of its own before the first request.
    """
    import uvicorn

    config = uvicorn.Config(
        application,
        http="h11",
        ws="none",
        lifespan="on" if has_lifespan else "off",
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
    )
    uvicorn.Server(config).run(sockets=[listener])
    # Only a signal ends it. It raises the signal again, but a background job ignores SIGINT.
    raise KeyboardInterrupt
