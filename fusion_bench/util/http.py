"""JSON over HTTP, with API keys that no log, report or traceback shows.

A key comes from the environment and reaches httpx as an authenticator, so that it is in no local
variable, URL or message. It is redacted in what a server returns.
"""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Generator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.util.api_key import ApiKey
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    import httpx

#: Characters of a server's message that an error quotes.
MAX_QUOTED = 200
#: Kind of failure by status; others below 500 are "refused", from 500 "server".
STATUS_KINDS: dict[int, FailureKind] = {
    408: "server",  # the server gave up waiting; our own limit is "timeout"
    409: "server",
    413: "too_large",
    424: "server",  # Text-Embeddings-Inference: the model failed
    429: "rate_limit",
    499: "server",
}


def check_url(url: str) -> str:
    """A base URL without its trailing slash.

    Raises:
        ConfigError: It is no http(s) URL, or has a user, a query or a fragment.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(f"base_url {url!r}: an http:// or https:// URL is needed")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"base_url of host {parts.hostname!r}: a user, a query or a fragment is not allowed; "
            "API keys come from environment variables"
        )
    return url.rstrip("/")


class JsonClient:
    """A client of one server that takes and returns JSON.

    Args:
        base_url: URL of the server.
        key: Sent as a bearer token; None = no authentication.
        timeout: Seconds to wait for a connection, and for each part of a response.
        connections: Most concurrent connections.

    Raises:
        ConfigError: The base URL is not valid.
        MissingExtraError: httpx is not installed.
    """

    def __init__(
        self, base_url: str, *, key: ApiKey | None, timeout: float, connections: int = 100
    ) -> None:
        self.base_url = check_url(base_url)
        self._key = key
        library = _import_httpx()
        self._client: httpx.AsyncClient = library.AsyncClient(
            auth=None if key is None else _bearer_auth(key),
            timeout=timeout,
            limits=library.Limits(max_connections=connections),
            verify=self.base_url.startswith("https"),  # loading certificates is slow
            trust_env=False,  # no proxy and no .netrc may see the key
        )

    async def post_json(self, path: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Send JSON and return the JSON response.

        Raises:
            ProviderError: The request failed; its kind says how.
        """
        return await self._send_request("POST", path, json=body)

    async def get_json(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON response to GET; see :meth:`post_json`."""
        return await self._send_request("GET", path)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _send_request(self, method: str, path: str, **body: Any) -> Any:  # noqa: ANN401 - JSON
        library = _import_httpx()
        where = f"{self.base_url}{path}"
        response, failure = None, None
        try:
            response = await self._client.request(method, where, **body)
        except library.TimeoutException:
            failure = ProviderError(f"{where}: no answer in time", kind="timeout")
        except library.HTTPError as error:
            message = f"{where}: {self._quote_text(str(error) or type(error).__name__)}"
            failure = ProviderError(message, kind="connection")
        if response is None:
            # Raised here, so that the traceback holds no frame with the request.
            raise failure or AssertionError("unreachable")
        if not response.is_success:
            raise self._status_error(where, response)
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise ProviderError(
                f"{where}: the response is not JSON: {self._quote_text(response.text)!r}",
                kind="malformed",
            ) from None

    def _status_error(self, where: str, response: httpx.Response) -> ProviderError:
        status = response.status_code
        kind = STATUS_KINDS.get(status, "server" if status >= 500 else "refused")
        hint = (
            {401: f": check {self._key.name}"} if self._key else {401: ": it requires an API key"}
        )
        return ProviderError(
            f"{where}: status {status}{hint.get(status, '')}: {self._quote_text(response.text)!r}",
            kind=kind,
            retry_after=retry_after(response.headers, datetime.now(UTC)),
        )

    def redact_text(self, text: str) -> str:
        """``text`` without the API key."""
        return text if self._key is None else self._key.redact_text(text)

    def _quote_text(self, text: str) -> str:
        # Redacted before it is cut: part of a key would not be recognized.
        clear = self.redact_text(text)
        return " ".join(clear.split())[:MAX_QUOTED]


def retry_after(headers: Any, now: datetime) -> float | None:  # noqa: ANN401 - any mapping
    """Seconds that a server asks to wait: ``retry-after-ms``, or ``Retry-After`` (RFC 9110).

    Args:
        headers: A case-insensitive mapping.
        now: The current time.

    Returns:
        At least 0; None without a valid header.
    """
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (given := str(headers.get("retry-after"))).strip().isdigit():
            seconds = float(given)
        else:
            seconds = (parsedate_to_datetime(given) - now).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _bearer_auth(key: ApiKey) -> httpx.Auth:
    """An authenticator, so that no local variable holds the key."""
    base: type[httpx.Auth] = _import_httpx().Auth

    def auth_flow(_: httpx.Auth, request: httpx.Request) -> Generator[httpx.Request]:
        request.headers["Authorization"] = f"Bearer {key.reveal_key()}"
        yield request

    return type("Bearer", (base,), {"auth_flow": auth_flow})()  # type: ignore[no-any-return]


def _import_httpx() -> Any:  # noqa: ANN401 - a module
    return import_optional("httpx", extra="remote", purpose="calling a server")
