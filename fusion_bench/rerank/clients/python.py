"""A reranker defined in Python."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import ClassVar, Literal, cast

from fusion_bench.errors import ConfigError
from fusion_bench.rerank.clients._base import Provider, providers
from fusion_bench.rerank.protocol import Identity, Reranker


@providers.register
class PythonObject(Provider):
    """Any object that follows the protocol (see ``fusion_bench.rerank.protocol``).

    The object's own identity and batch apply, not ``space``, ``batch`` and ``max_tokens``.

    Attributes:
        object: ``package.module:name`` of a reranker, or of a class or function that makes one.
    """

    source: ClassVar[str] = "the user"

    method: Literal["python"] = "python"
    object: str
    max_tokens: int | None = None

    @property
    def model_identity(self) -> Identity:
        """The object's own identity."""
        return self._load_object().identity

    @asynccontextmanager
    async def open_reranker(self) -> AsyncIterator[Reranker]:
        """Import the object."""
        yield self._load_object()

    def _load_object(self) -> Reranker:
        module, _, name = self.object.partition(":")
        try:
            target = getattr(importlib.import_module(module), name)
            is_reranker = hasattr(target, "score") and not isinstance(target, type)
            reranker = target if is_reranker else target()
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            raise ConfigError(
                f"object {self.object!r}: {type(error).__name__}: {error}: name the "
                "package.module:name of a reranker, or of what makes one without arguments"
            ) from None
        for needed in ("identity", "batch", "score"):
            if not hasattr(reranker, needed):
                raise ConfigError(f"object {self.object!r}: a reranker needs {needed!r}")
        return cast("Reranker", reranker)
