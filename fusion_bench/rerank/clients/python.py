"""A reranker of the user's own, by its place in Python."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Literal, cast

from fusion_bench.errors import ConfigError
from fusion_bench.rerank.clients._base import Provider, providers
from fusion_bench.rerank.protocol import Identity, Reranker

__all__ = ["Python"]


@providers.register
class Python(Provider):
    """Any object that follows the protocol (see ``fusion_bench.rerank.protocol``).

    Its own identity and batch count; ``space``, ``batch`` and ``max_tokens`` here do not.

    Attributes:
        object: ``package.module:name`` of a reranker, or of what makes one when called.
    """

    source: ClassVar[str] = "the user"

    method: Literal["python"] = "python"
    object: str
    max_tokens: int | None = None

    @property
    def identity(self) -> Identity:
        """The object's own."""
        return self._load().identity

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Reranker]:
        """Import it."""
        yield self._load()

    def _load(self) -> Reranker:
        module, _, name = self.object.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError(
                f"object {self.object!r}: {error}: give package.module:name of something that "
                "Python can import"
            ) from None
        try:
            made = found if hasattr(found, "score") and not isinstance(found, type) else found()
        except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
            raise ConfigError(
                f"object {self.object!r}: cannot be made without arguments: "
                f"{type(error).__name__}: {error}"
            ) from None
        for needed in ("identity", "batch", "score"):
            if not hasattr(made, needed):
                raise ConfigError(f"object {self.object!r}: a reranker needs {needed!r}")
        return cast("Reranker", made)
