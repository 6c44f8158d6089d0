"""How a server wants its key: the name of the header, and what stands before the key."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from fusion_bench.util.api_key import ApiKey


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

    def format_key(self, key: ApiKey) -> str:
        """The header's value."""
        text = key.reveal_key()
        return self.prefix + (b64encode(text.encode()).decode() if self.is_base64 else text)


BEARER: Final = KeyHeader("Authorization", "Bearer ")
BASIC: Final = KeyHeader("Authorization", "Basic ", is_base64=True)
