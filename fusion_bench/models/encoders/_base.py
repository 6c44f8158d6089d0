"""Base classes of encoders; OpenAI's embeddings and Text-Embeddings-Inference, behind HTTP."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fusion_bench.config.models import MOST_BATCH
from fusion_bench.config.registry import Method, MethodRegistry
from fusion_bench.errors import FusionBenchError, ProviderError
from fusion_bench.models.endpoints import Answers, Model, RepeatedServer, RetryRules
from fusion_bench.util.calls import call_in_thread
from fusion_bench.util.http_client import JsonClient, open_client
from fusion_bench.util.json_text import count_at, malformed_error, mapping_at, text_at

Vectors: TypeAlias = NDArray[np.float32]
#: Bytes of a vector in JSON: 10,000 numbers.
VECTOR_BYTES: Final = 256 * 2**10
#: Texts → vectors, shape (N, H).
Encode: TypeAlias = Callable[[Sequence[str]], Vectors]


class TextEncoder(Method):
    """One encoder, as a configuration.

    Attributes:
        method: Its name.
        source: Where it is described.
        model: Name of the model.
        batch: Most texts per call.
        query_prefix: Put before every query, as some models want it.
        document_prefix: Put before every document.
    """

    source: ClassVar[str]

    model: str = ""
    batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] = 32
    query_prefix: str = ""
    document_prefix: str = ""

    @abstractmethod
    def open_model(self) -> AbstractAsyncContextManager[Model]:
        """Connect, or load the model; leaving the context releases it.

        The values of its replies are float32 vectors, little-endian.

        Raises:
            ConfigError: A key is missing.
            MissingExtraError: A library is.
        """


class LocalEncoder(TextEncoder):
    """An encoder on this machine: one call at a time, in a thread."""

    @property
    @abstractmethod
    def weights_digest(self) -> str:
        """Digest of its files; empty if they are unknown."""

    @abstractmethod
    def load_encoder(self) -> Encode:
        """Load the model."""

    @asynccontextmanager
    async def open_model(self) -> AsyncIterator[Model]:
        """Load the model."""
        identity = _identify(self.method, self.model, self.weights_digest)
        yield _LocalModel(identity, self.batch, await asyncio.to_thread(self.load_encoder))


class _LocalModel:
    """A loaded model."""

    concurrency = 1
    retries = RetryRules(attempts=1)

    def __init__(self, identity: str, batch: int, encode: Encode) -> None:
        self.identity, self.batch, self._encode = identity, batch, encode

    async def answer(self, texts: Sequence[str]) -> Answers:
        """Vectors of the texts."""
        try:
            vectors = await call_in_thread(self._encode, texts)
        except FusionBenchError:
            raise
        except Exception as error:  # noqa: BLE001 - each runtime has its own exceptions
            raise ProviderError(f"the model failed: {error}", kind="server") from None
        return Answers(_pack_vectors(vectors, len(texts)))


class HttpEncoder(RepeatedServer, TextEncoder):
    """An encoder behind HTTP."""

    @abstractmethod
    def build_request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The request body."""

    @abstractmethod
    def parse_vectors(self, data: Any, count: int) -> tuple[Sequence[Any], int]:  # noqa: ANN401 - JSON
        """The vectors of ``count`` texts in a response, in their order, and the tokens it bills.

        Raises:
            ProviderError: Kind ``malformed``.
        """

    @asynccontextmanager
    async def open_model(self) -> AsyncIterator[Model]:
        """Connect."""
        async with open_client(self.base_url, self) as remote:
            model = remote.read_name(await self.resolve_model(remote)) or self.model
            yield _RemoteModel(self, remote, _identify(self.method, model, self.endpoint))

    @property
    def endpoint(self) -> str:
        """What a vector depends on besides the method, the model and the text."""
        return f"{self.base_url}{self.path}"


class _RemoteModel:
    """An :class:`HttpEncoder` that is connected."""

    def __init__(self, encoder: HttpEncoder, remote: JsonClient, identity: str) -> None:
        self.identity, self.batch = identity, encoder.batch
        self.concurrency, self.retries = encoder.concurrency, encoder.retries
        self._encoder, self._remote = encoder, remote

    async def answer(self, texts: Sequence[str]) -> Answers:
        """Vectors of the texts."""
        body, extra = self._encoder.build_request(texts), VECTOR_BYTES * len(texts)
        data = await self._remote.post_json(self._encoder.path, body, extra_bytes=extra)
        rows, tokens = self._encoder.parse_vectors(data, len(texts))
        try:
            with np.errstate(over="ignore"):  # what overflows is infinite, and refused below
                vectors = np.array(rows, dtype=np.float32)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise malformed_error("the vectors are no lists of numbers of one length") from None
        return Answers(_pack_vectors(vectors, len(texts)), tokens)


def _identify(method: str, model: str, endpoint: str) -> str:
    """All that a vector depends on besides its text."""
    return json.dumps([method, model, endpoint])


def _pack_vectors(vectors: Vectors, count: int) -> tuple[bytes, ...]:
    """Each vector as bytes.

    Raises:
        ProviderError: Kind ``malformed``: they are not ``count`` vectors of finite numbers.
    """
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise malformed_error(f"an array of shape {vectors.shape} for {count} texts")
    if not np.isfinite(vectors).all():
        raise malformed_error("a vector holds a number that is not finite")
    return tuple(row.tobytes() for row in vectors.astype("<f4"))


encoders: MethodRegistry[TextEncoder] = MethodRegistry(
    "encoder", "fusion_bench.models.encoders", "fusion_bench.encoders", TextEncoder
)


@encoders.register
class OpenAIEncoder(HttpEncoder):
    """``/embeddings``.

    Attributes:
        dimensions: Length of the vectors, for models that can shorten them; None = the model's.
    """

    source = "platform.openai.com/docs/api-reference/embeddings"
    path = "/embeddings"

    method: Literal["openai"] = "openai"
    model: Annotated[str, Field(min_length=1)]
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    dimensions: Annotated[int, Field(ge=1)] | None = None

    @property
    def endpoint(self) -> str:
        """With the length of the vectors."""
        length = "" if self.dimensions is None else f", {self.dimensions} dimensions"
        return f"{super().endpoint}{length}"

    def build_request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The model and the texts."""
        body: dict[str, Any] = {
            "model": self.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        return body if self.dimensions is None else {**body, "dimensions": self.dimensions}

    def parse_vectors(self, data: Any, count: int) -> tuple[Sequence[Any], int]:  # noqa: ANN401 - JSON
        """``data`` holds an ``index`` and an ``embedding`` for each text."""
        rows = data.get("data") if isinstance(data, dict) else None
        vectors: dict[int, Any] = {}
        for row in rows if isinstance(rows, list) else ():
            fields = row if isinstance(row, dict) else {}
            index = fields.get("index")
            if type(index) is int and index not in vectors and "embedding" in fields:
                vectors[index] = fields["embedding"]
        if vectors.keys() != set(range(count)):
            raise malformed_error(f"{len(vectors)} embeddings for {count} texts")
        tokens = count_at(mapping_at(data, "usage"), "total_tokens")
        return [vectors[i] for i in range(count)], tokens


@encoders.register
class TEIEncoder(HttpEncoder):
    """``/embed``: an array of arrays; ``/info`` names the model."""

    source = "github.com/huggingface/text-embeddings-inference"
    path = "/embed"

    method: Literal["tei"] = "tei"
    base_url: str = "http://127.0.0.1:8080"
    batch: int = 32

    def build_request(self, texts: Sequence[str]) -> dict[str, Any]:
        """The texts; the server truncates long ones instead of refusing them."""
        return {"inputs": list(texts), "truncate": True, "normalize": True}

    def parse_vectors(self, data: Any, count: int) -> tuple[Sequence[Any], int]:  # noqa: ANN401 - JSON
        """One array per text."""
        if not isinstance(data, list) or len(data) != count:
            given = len(data) if isinstance(data, list) else "no"
            raise malformed_error(f"{given} embeddings for {count} texts")
        return data, 0

    async def resolve_model(self, remote: JsonClient) -> str | None:
        """``model_id`` and ``model_sha``: another model may run under this URL tomorrow."""
        info = await remote.get_json("/info")
        return "@".join(filter(None, (text_at(info, "model_id"), text_at(info, "model_sha"))))
