"""Who may ask the console, what the bodies of requests may hold.

A page of another site must neither read nor send anything. The host name of a request has to be
this server's, which stops DNS rebinding; an ``Origin`` has to be this server's; and every answer
with data needs the cookie that the address with the token sets. The cookie is ``SameSite=Strict``
and not readable by scripts. Its name holds the port, since cookies of one host go to all of its
ports.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, TypeVar

from pydantic import Field, StrictBool

from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.console.setting import Name, Setting
from fusion_bench.errors import ConfigError
from fusion_bench.util.json_text import parse_strict_json

#: Names that stand for this machine alone.
HOSTS: Final = ("127.0.0.1", "localhost")


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


R = TypeVar("R", bound=StrictModel)

#: Bytes of a body, a hundred times what a page sends.
MOST_BYTES: Final = 200_000


class AnswerRequest(StrictModel):
    """``POST /api/answer``.

    Attributes:
        setting: The setting.
        previous: The one before it.
    """

    setting: Setting
    previous: Setting | None = None


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


def parse_request(model: type[R], body: bytes) -> R:
    """The request in a body.

    Raises:
        ConfigError: It is not strict JSON, or breaks a rule.
    """
    try:
        data = parse_strict_json(body)
    except ValueError as error:
        raise ConfigError(f"body: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError("body: a JSON object is needed")
    return parse_model(model, data)
