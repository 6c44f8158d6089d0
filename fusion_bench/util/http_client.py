"""JSON over HTTP: bounded in size, in time, without a word of a server that shows a key.

A key comes from the environment and reaches httpx as an authenticator, so that it is in no local
variable, URL or message.
"""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import json
import math
import re
import urllib.parse
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any, Final, Protocol

from fusion_bench.errors import ConfigError, FailureKind, ProviderError
from fusion_bench.util import api_keys
from fusion_bench.util.json_text import parse_strict_json
from fusion_bench.util.optional_imports import import_optional

if TYPE_CHECKING:
    import httpx


def check_url(url: str, *, name: str = "base_url") -> str:
    """A base URL without its trailing slash, and with its scheme in small letters.

    Args:
        url: The URL.
        name: The setting that holds it, for messages.

    Raises:
        ConfigError: It is no http(s) URL, or has a user, a query or a fragment.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(
            f"{name}: not a valid URL: it reads http://HOST:PORT/PATH, with a port from 1 to 65535"
        ) from None
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"{name} of host {host!r}: a user, a query or a fragment is not allowed; "
            "API keys come from environment variables"
        )
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigError(f"{name} {url!r}: an http:// or https:// URL is needed")
    if port == 0 or " " in url or not url.isprintable():
        raise ConfigError(f"{name} {url!r}: blanks, control characters and port 0 are not allowed")
    return f"{parts.scheme}{url[len(parts.scheme) :]}".rstrip("/")


def is_this_machine(host: str) -> bool:
    """Whether a host is ``localhost`` or an address of the loopback, which no network sees."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True)
class KeyHeader:
    """How a server wants its key.

    Attributes:
        name: The header.
        prefix: Stands before the key.
        is_base64: Whether the key is sent in base64: ``USER:PASSWORD`` of basic authentication.
    """

    name: str
    prefix: str = ""
    is_base64: bool = False

    def format_key(self, key: api_keys.ApiKey) -> str:
        """The header's value."""
        text = key.reveal_key()
        return self.prefix + (b64encode(text.encode()).decode() if self.is_base64 else text)


BEARER: Final = KeyHeader("Authorization", "Bearer ")
BASIC: Final = KeyHeader("Authorization", "Basic ", is_base64=True)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
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
    except (TypeError, ValueError, OverflowError):  # years and zones of twenty digits overflow
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


#: What a client asks for; a body in another encoding is refused.
ACCEPTED_ENCODING: Final = "gzip"
_GZIP = {"gzip", "x-gzip"}


class BodyError(Exception):
    """A body that is too long, damaged, or in an encoding that nobody asked for."""


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """The decoded body, read piece by piece.

    No more than ``limit`` bytes are kept, and no more are read from the server or decompressed but
    for one piece of 64 KB.

    Args:
        response: A response whose body has not been read.
        limit: Most bytes, before and after decompression.

    Raises:
        BodyError: It is longer, damaged, or in an encoding that was not asked for.
    """
    decoder, body, received = _choose_decoder(response), bytearray(), 0
    async for piece in response.aiter_raw():
        received += len(piece)
        try:
            # One byte over the limit shows that there is more.
            body += piece if decoder is None else decoder.decompress(piece, limit + 1 - len(body))
        except zlib.error:
            raise BodyError("the compressed body is damaged") from None
        if received > limit or len(body) > limit:
            raise BodyError(f"the body is longer than {limit:,} bytes")
    if decoder is not None and not decoder.eof:
        raise BodyError("the compressed body is cut off")
    return bytes(body)


async def read_start(response: httpx.Response, limit: int) -> bytes:
    """The first bytes of a body, decoded as far as that is possible.

    Args:
        response: A response whose body has not been read.
        limit: How many bytes, before and after decompression.
    """
    try:
        decoder, start, received = _choose_decoder(response), bytearray(), 0
        async for piece in response.aiter_raw():
            received += len(piece)
            start += piece if decoder is None else decoder.decompress(piece, limit + 1 - len(start))
            if received >= limit or len(start) >= limit:
                break
    except (BodyError, zlib.error):
        return b""
    return bytes(start[:limit])


def _choose_decoder(response: httpx.Response) -> zlib._Decompress | None:
    """A decompressor; None = the body is sent as it is."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        return None
    if encoding in _GZIP:
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    raise BodyError(f"the body has another encoding than {ACCEPTED_ENCODING}")


#: Most bytes of a response: this many, and four for each of the request.
BASE_BYTES: Final = 2 * 2**20
BYTES_PER_REQUEST_BYTE: Final = 4
#: Bytes of an error page that are read.
ERROR_BYTES: Final = 16 * 2**10
#: How the content filters of OpenAI and Azure say in an error that they refused a request.
FILTERED: Final = re.compile(
    rb'"code"\s*:\s*"(?:content_filter|content_policy_violation|ResponsibleAIPolicyViolation)"'
)
#: Kind of failure by status; others below 500 are "refused", from 500 "server".
STATUS_KINDS: Final[dict[int, FailureKind]] = {
    408: "server",  # the server gave up waiting; our own limit is "timeout"
    409: "server",
    413: "too_large",
    424: "server",  # Text-Embeddings-Inference: the model failed
    429: "rate_limit",
    499: "server",
}


#: What to do, by status; 401 names the key.
STATUS_HINTS: Final = {
    403: ": check what the API key may do",
    404: ": check the URL and the names in it",
    429: ": it takes fewer requests: set requests_per_minute, or a smaller concurrency",
}


@dataclass(frozen=True, repr=False)
class _Answer:
    """A response whose body was read as far as it is needed.

    Attributes:
        status: Its status.
        body: All of it; of an error page the start.
        retry_after: Seconds that the server asks to wait; None = it does not say.
    """

    status: int
    body: bytes
    retry_after: float | None


class JsonClient:
    """A client of one server that takes and returns JSON.

    A response has at most 2 MB and four bytes for each byte of the request, after decompression.
    Redirects are not followed, cookies are not kept, and no text of an answer shows the key: see
    :func:`~fusion_bench.util.api_keys.hide_key`.

    Args:
        base_url: URL of the server.
        key: Sent with every request; None = no authentication.
        timeout: Seconds for a whole request, from the connection to the last byte.
        connections: Most concurrent connections.
        key_header: How the key is sent.
        allow_http: Whether the key may be sent to another machine without TLS.

    Raises:
        ConfigError: The base URL is not valid, or the key would be sent in clear.
        MissingExtraError: httpx is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        key: api_keys.ApiKey | None,
        timeout: float,
        connections: int = 100,
        key_header: KeyHeader = BEARER,
        allow_http: bool = False,
    ) -> None:
        self.base_url = check_url(base_url)
        self._key, self._timeout = key, timeout
        library = _import_httpx()
        try:
            url = library.URL(self.base_url)
        except (library.InvalidURL, UnicodeError):
            raise ConfigError(f"base_url {self.base_url!r}: the host is not valid") from None
        is_safe = url.scheme == "https" or allow_http or is_this_machine(url.host)
        if key is not None and not is_safe:
            raise ConfigError(
                f"{self.base_url}: {key.name} would be sent to another machine in clear: use "
                "https, key: null where the server needs none, or allow_http: true"
            )
        self._client: httpx.AsyncClient = library.AsyncClient(
            auth=None if key is None else _make_auth(key, key_header),
            headers={"Accept-Encoding": ACCEPTED_ENCODING, "Content-Type": "application/json"},
            cookies=_NoCookies(),
            timeout=timeout,
            limits=library.Limits(max_connections=connections),
            verify=url.scheme != "http",  # loading certificates is slow
            trust_env=False,  # no proxy and no .netrc may see the key
        )
        self._guard = api_keys.LogGuard(key)
        self._guard.install()

    async def post_json(self, path: str, body: dict[str, Any], *, extra_bytes: int = 0) -> Any:  # noqa: ANN401 - JSON
        """Send JSON and return the JSON response.

        Args:
            path: Of the endpoint, below the base URL.
            body: What is sent.
            extra_bytes: By how much the response may be longer than that of other endpoints.

        Raises:
            ProviderError: The request failed; its kind says how.
        """
        return await self.request_json("POST", path, body, extra_bytes=extra_bytes)

    async def get_json(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON response to GET; see :meth:`post_json`."""
        return await self.request_json("GET", path, None)

    async def request_json(
        self, method: str, path: str, body: object, *, extra_bytes: int = 0
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request of any method, with a body of any JSON or, for None, without one.

        Arguments and errors as for :meth:`post_json`.
        """
        where, content = f"{self.base_url}{path}", None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        limit = BASE_BYTES + BYTES_PER_REQUEST_BYTE * len(content or b"") + extra_bytes
        answer = await self._exchange(method, where, limit, content)
        if isinstance(answer, ProviderError):
            # Raised here, so that the traceback holds no frame with the request.
            raise answer
        if not 200 <= answer.status < 300:
            kind = STATUS_KINDS.get(answer.status, "server" if answer.status >= 500 else "refused")
            hint = STATUS_HINTS.get(answer.status, "")
            if answer.status == 401:
                hint = f": check {self._key.name}" if self._key else ": it requires an API key"
            elif 300 <= answer.status < 400:
                hint = ": redirects are not followed: give the URL that it leads to"
            quoted = self.quote_text(answer.body.decode(errors="replace"))
            raise ProviderError(
                f"{where}: status {answer.status}{hint}: {quoted}",
                kind=kind,
                retry_after=answer.retry_after,
                is_filtered=kind == "refused" and FILTERED.search(answer.body) is not None,
            )
        try:
            return api_keys.hide_key(parse_strict_json(answer.body), self._key)
        except RecursionError:
            message = f"{where}: the response shows the API key, in brackets that are too deep"
        except ValueError as error:
            quoted = self.quote_text(answer.body[:ERROR_BYTES].decode(errors="replace"))
            message = f"{where}: the response is not valid JSON ({error}): {quoted}"
        raise ProviderError(message, kind="malformed")

    async def close(self) -> None:
        """Close the connections."""
        self._guard.remove()
        await self._client.aclose()

    def read_name(self, text: str | None) -> str | None:
        """A name of a model that the server states, as it may be shown and stored.

        None where it states none, or where the name resembles the API key.
        """
        return api_keys.show_text(text, self._key) if text else None

    def quote_text(self, text: str) -> str:
        """A server's text as an error may show it."""
        shown = api_keys.show_text(text, self._key)
        return api_keys.NOT_SHOWN if shown is None else repr(shown)

    def redact_text(self, text: str) -> str:
        """A passage or another text that a model wrote, as it may be stored: without the key."""
        plain = text.encode(errors="replace").decode()  # without halves of surrogate pairs
        shown = plain if self._key is None else self._key.matcher.redact_text(plain)
        return shown.replace(api_keys.MARK, "")

    async def _exchange(
        self, method: str, where: str, limit: int, content: bytes | None
    ) -> _Answer | ProviderError:
        library = _import_httpx()
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream(method, where, content=content) as response,
            ):
                is_good = response.is_success
                body = await (
                    read_body(response, limit) if is_good else read_start(response, ERROR_BYTES)
                )
                wait = retry_after(response.headers, datetime.now(UTC))
                return _Answer(response.status_code, body, wait)
        except (TimeoutError, library.TimeoutException):
            return ProviderError(f"{where}: no answer within {self._timeout:g} s", kind="timeout")
        except BodyError as error:
            return ProviderError(f"{where}: malformed answer: {error}", kind="malformed")
        except (library.HTTPError, library.InvalidURL, OSError, ValueError) as error:
            reason = self.quote_text(str(error) or type(error).__name__)
            is_sent = not isinstance(error, library.ConnectError)
            remedy = "" if is_sent else " (is the server running, and the URL right?)"
            message = f"{where}: {reason}{remedy}"
            return ProviderError(message, kind="connection", is_billable=is_sent)


class ServerSettings(Protocol):
    """What the settings of every server have."""

    @property
    def key(self) -> str | None:
        """The environment variable that holds the API key; None = no authentication."""

    @property
    def timeout(self) -> float:
        """Seconds for a whole request."""

    @property
    def concurrency(self) -> int:
        """Most concurrent connections."""

    @property
    def allow_http(self) -> bool:
        """Whether the key may be sent to another machine without TLS."""


@asynccontextmanager
async def open_client(
    base_url: str, settings: ServerSettings, key_header: KeyHeader = BEARER
) -> AsyncIterator[JsonClient]:
    """A client, closed in the end.

    Args:
        base_url: URL of the server.
        settings: How it is called.
        key_header: How the key is sent.

    Raises:
        ConfigError: The key is missing, or would be sent in clear; or the base URL is not valid.
        MissingExtraError: httpx is not installed.
    """
    key: api_keys.ApiKey | None = getattr(settings, "given_key", None)
    if key is None and settings.key is not None:
        key = api_keys.ApiKey.from_environment(settings.key)
    # Import now what the first request would import: its deadline may be short.
    for module in ("concurrent.futures.thread", "encodings.idna", "encodings.utf_8_sig"):
        importlib.import_module(module)
    library = import_optional("anyio", extra="remote", purpose="calling a server")
    library.connect_tcp  # noqa: B018 - its module is imported when it is named
    await library.sleep(0)
    client = JsonClient(
        base_url,
        key=key,
        timeout=settings.timeout,
        connections=settings.concurrency,
        key_header=key_header,
        allow_http=settings.allow_http,
    )
    try:
        yield client
    finally:
        await client.close()


class _NoCookies(CookieJar):
    """Keeps no cookie, and does not read any."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Do nothing."""


def _make_auth(key: api_keys.ApiKey, header: KeyHeader) -> httpx.Auth:
    """An authenticator, so that no local variable holds the key."""
    base: type[httpx.Auth] = _import_httpx().Auth

    def auth_flow(_: httpx.Auth, request: httpx.Request) -> Generator[httpx.Request]:
        request.headers[header.name] = header.format_key(key)
        yield request

    return type("KeyAuth", (base,), {"auth_flow": auth_flow})()  # type: ignore[no-any-return]


def _import_httpx() -> Any:  # noqa: ANN401 - a module
    return import_optional("httpx", extra="remote", purpose="calling a server")
