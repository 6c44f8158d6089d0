"""API keys that no log, report or traceback shows."""

from __future__ import annotations

import os
import re
from typing import Final, NoReturn

from fusion_bench.errors import ConfigError
from fusion_bench.util.secret_matcher import KEPT_PIECE, SecretMatcher

#: A name that nobody takes for a key: words of capitals, such as ``JINA_API_KEY``.
_VARIABLE: Final = re.compile(r"[A-Z]{2,12}(_([A-Z]{1,12}|[0-9]{1,3}))*")


class ApiKey:
    """An API key that only requests can read.

    Args:
        value: The key.
        name: The environment variable that holds it.
    """

    __slots__ = ("__value", "matcher", "name")

    def __init__(self, value: str, *, name: str) -> None:
        self.__value = value
        self.name = name
        self.matcher = SecretMatcher(value)

    @classmethod
    def from_environment(cls, name: str) -> ApiKey:
        """The key in an environment variable.

        Raises:
            ConfigError: It is not set, is empty, or is no valid header value.
        """
        value = os.environ.get(name, "").strip()
        if not value and not _VARIABLE.fullmatch(name):
            raise ConfigError(
                "the environment variable that 'key' names is not set, and its name is not shown, "
                "as it may be the key itself: give the name of a variable, such as MY_API_KEY, and "
                "set that to the API key"
            )
        if not value:
            raise ConfigError(
                f"the environment variable {name} is not set: set it to the API key, or write "
                "'key: null' for a server that needs none"
            )
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ConfigError(
                f"the environment variable {name} is no API key: only ASCII without blanks"
            )
        return cls(value, name=name)

    @property
    def is_short(self) -> bool:
        """Whether it cannot be told from other texts, so that none of an answer is kept."""
        return len(self.__value) < KEPT_PIECE

    def is_shown_in(self, text: str) -> bool:
        """Whether a message may show it."""
        return self.is_short or self.matcher.is_shown_in(text)

    def reveal_key(self) -> str:
        """The key itself, for a request."""
        return self.__value

    def __repr__(self) -> str:
        return f"ApiKey({self.name})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key cannot be pickled")
