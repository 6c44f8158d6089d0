"""The live pipeline: rerank the candidates of one query.

Drop duplicates, keep ``max_candidates``, score them, bring the scores onto the unit scale, drop
documents below ``min_score``, return ``top_k``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fusion_bench.blend import rank_positions
from fusion_bench.io.provenance import FUSED_ORDER
from fusion_bench.rerank.chain import ProviderChain
from fusion_bench.rerank.protocol import Candidate
from fusion_bench.rerank.settings import RerankSettings

log = logging.getLogger("fusion_bench.rerank")


@dataclass(frozen=True)
class LiveResult:
    """The list to show.

    Attributes:
        ranked: Document and score, best first; fused scores where no provider scored.
        provider: ``provider/model`` that scored, or ``fused order``.
        degraded: Why it was not the first provider; empty if it was.
        skipped: Whether there were too few candidates to rerank.
        latency_ms: Duration of the reranking.
    """

    ranked: tuple[tuple[str, float], ...]
    provider: str
    degraded: str = ""
    skipped: bool = False
    latency_ms: float = 0.0


async def rerank_candidates(
    query: str,
    candidates: Sequence[Candidate],
    chain: ProviderChain,
    settings: RerankSettings,
    *,
    elapsed_ms: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> LiveResult:
    """Rerank the candidates of one query, within its deadline.

    Args:
        query: The query's text.
        candidates: In fused order; only the first of a repeated document counts.
        chain: The providers.
        settings: See there.
        elapsed_ms: Time that the query has taken so far.
        clock: Monotonic clock in seconds.

    Raises:
        ProviderError: A refusal, when settings are strict.
    """
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        first.setdefault(candidate.id, candidate)
    kept = list(first.values())[: settings.max_candidates]
    ranked = tuple((candidate.id, candidate.score) for candidate in kept)
    if len(kept) <= (0 if settings.always_rerank else settings.skip_limit):
        return LiveResult(ranked[: settings.top_k], FUSED_ORDER, skipped=True)
    left = None if settings.deadline is None else settings.deadline.remaining_ms(elapsed_ms)
    if left is not None and left <= 0:
        log.warning("no time left to rerank after %.0f ms", elapsed_ms)
        reason = f"{FUSED_ORDER} after {chain.first_identity.label}: timeout"
        return LiveResult(ranked[: settings.top_k], FUSED_ORDER, reason)
    started = clock()
    answer = await chain.score_documents(
        query, [candidate.text for candidate in kept], None if left is None else left / 1e3
    )
    took = 1e3 * (clock() - started)
    if unit := answer.scores_in("unit"):
        place = rank_positions(np.array(unit))  # equal scores keep the fused order
        order = sorted(range(len(kept)), key=place.__getitem__)
        least = -1.0 if settings.min_score is None else settings.min_score
        ranked = tuple((kept[i].id, unit[i]) for i in order if unit[i] >= least)
    return LiveResult(
        ranked[: settings.top_k], answer.provider_label, answer.degraded_reason, latency_ms=took
    )
