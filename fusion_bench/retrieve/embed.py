"""Texts to vectors of length one, through the answer store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import DataError
from fusion_bench.retrieve.answers.collect import Usage, collect_answers
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.retrieve.encoders import TextEncoder

#: Below this a vector is taken as zero and not scaled up to length one.
SMALLEST_NORM = 1e-12


def embed_texts(
    encoder: TextEncoder,
    texts: Sequence[str],
    kind: Literal["query", "document"],
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> tuple[FloatArray, Usage]:
    """Vectors of length one; a blank text is not asked for and has a row of zeros.

    Args:
        encoder: Makes the vectors that the store does not have.
        texts: Shape (N,).
        kind: Which prefix the texts get.
        store: Keeps the vectors.
        on_progress: Called with the number of vectors known, and of all.

    Returns:
        Shape (N, H), and what was asked for; H is 0 where every text is blank.

    Raises:
        ProviderError: The encoder failed; vectors that came before are stored.
        DataError: The vectors are not of one length.
    """
    prefix = encoder.query_prefix if kind == "query" else encoder.document_prefix
    rows = [row for row, text in enumerate(texts) if text.strip()]
    asked = [prefix + texts[row] for row in rows]

    async def collect() -> tuple[list[bytes], Usage]:
        async with encoder.open_model() as model:
            return await collect_answers(model, asked, store, on_progress)

    values, usage = asyncio.run(collect()) if asked else ([], Usage())
    widths = {len(value) // 4 for value in values}
    if len(widths) > 1:
        raise DataError(
            f"{store.where}: encoder {encoder.method!r} gave vectors of {min(widths)} and "
            f"{max(widths)} numbers: the model has changed; name another file with --store"
        )
    vectors = np.zeros((len(texts), widths.pop() if widths else 0))
    if rows:
        vectors[rows] = [np.frombuffer(value, dtype="<f4") for value in values]
    return normalize_rows(vectors), usage


def normalize_rows(vectors: FloatArray) -> FloatArray:
    """Each row scaled to length one, a row of zeros as it is; shape (N, H), float64."""
    wide = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(norms > SMALLEST_NORM, norms, 1.0), dtype=np.float64)
