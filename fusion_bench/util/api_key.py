"""API keys that no log, report or traceback shows."""

from __future__ import annotations

import base64
import os
import re
import urllib.parse
from typing import NoReturn

from fusion_bench.errors import ConfigError

#: Characters of a key that are redacted wherever they occur in a row.
REDACTED_LENGTH = 6


class ApiKey:
    """An API key that only requests can read.

    Args:
        value: The key.
        name: The environment variable that holds it.
    """

    __slots__ = ("__value", "name")

    def __init__(self, value: str, *, name: str) -> None:
        self.__value = value
        self.name = name

    @classmethod
    def from_environment(cls, name: str) -> ApiKey:
        """The key in an environment variable.

        Raises:
            ConfigError: It is not set, is empty, or is no valid header value.
        """
        value = os.environ.get(name, "").strip()
        if not value:
            raise ConfigError(f"the environment variable {name} is not set: set it to the API key")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ConfigError(
                f"the environment variable {name} is no API key: only ASCII without blanks"
            )
        return cls(value, name=name)

    def reveal_key(self) -> str:
        """The key itself, for a request."""
        return self.__value

    def redact_text(self, text: str) -> str:
        """``text`` with the key and every longer part of it replaced.

        Servers quote keys in part ("sk-ab…yz is not valid"), also in base64, hexadecimal or percent
        encoding.
        """
        hidden = bytearray(len(text))
        for form in self._encoded_forms():
            size = min(REDACTED_LENGTH, len(form))
            for start in range(len(form) - size + 1):
                at = text.find(form[start : start + size])
                while at >= 0:
                    hidden[at : at + size] = b"\x01" * size
                    at = text.find(form[start : start + size], at + 1)
        runs = re.finditer(rb"\x01+|\x00+", bytes(hidden))
        return "".join("[key]" if hidden[r.start()] else text[r.start() : r.end()] for r in runs)

    def _encoded_forms(self) -> set[str]:
        raw = self.__value.encode()
        forms = {self.__value, urllib.parse.quote(self.__value, safe=""), raw.hex()}
        for shift in range(3):  # base64 depends on the number of bytes before
            partial = (len(raw) + shift) % 3 != 0
            for encode in (base64.b64encode, base64.urlsafe_b64encode):
                whole = encode(b"\0" * shift + raw).decode().rstrip("=")
                forms.add(whole[-(-8 * shift // 6) : len(whole) - partial])
        return forms

    def __repr__(self) -> str:
        return f"ApiKey({self.name})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled")
