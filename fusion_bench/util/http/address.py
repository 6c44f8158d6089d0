"""Addresses of servers."""

from __future__ import annotations

import ipaddress
import urllib.parse

from fusion_bench.errors import ConfigError


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
