"""CONV-07-05: keyword, semantic and graph search, fused, and reranked where it pays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fusion_bench.engines.conv_07_05 import Conv0705
from fusion_bench.live.rerankers import RerankerLike
from fusion_bench.rerank.settings import RerankSettings, RetryRules

#: The three strategies, which are the sources and their roles.
STRATEGIES = ("keyword", "semantic", "graph")
#: The name of the one rerank list.
RERANKER = "reranker"
#: Calls are as patient as the document's, which sets no limit, and a failure keeps the fused order.
SETTINGS = RerankSettings(
    timeout_ms=60_000.0, strict=False, retry=RetryRules(attempts=1, failure_kinds=())
)


def conv_07_05(
    reranker: RerankerLike | None = None,
    *,
    fusion: Literal["RRFFusion", "WeightedScoreFusion"] = "RRFFusion",
    k: int = 60,
    weights: Mapping[str, float] | None = None,
    always_rerank: bool = False,
    limit: int | None = None,
    **options: Any,  # noqa: ANN401 - of the pipeline
) -> dict[str, Any]:
    """The arguments of a pipeline of CONV-07-05.

    Args:
        reranker: Who scores; None = no reranker.
        fusion: Its name in the document.
        k: Of ``RRFFusion``.
        weights: By strategy; those of the document's types by default.
        always_rerank: False = as many candidates as are wanted, or fewer, are not reranked.
        limit: Documents to return; the document's default is 20. ``search(limit=…)`` replaces it.
        options: Of ``Pipeline``, such as ``retrievers``.
    """
    method: dict[str, Any] = {"method": fusion}
    if fusion == "RRFFusion":
        method["k"] = k
    if weights is not None:
        method["weights"] = dict(weights)
    top_k = Conv0705.defaults["top_k"] if limit is None else limit
    system: dict[str, Any] = {
        "name": Conv0705.name,
        "dialect": Conv0705.name,
        "runs": list(STRATEGIES),
        "fusion": method,
        "top_k": top_k,
    }
    if reranker is not None:
        blend = {"reranker": RERANKER, "always_rerank": always_rerank, "skip_limit": top_k}
        options = {"rerankers": {RERANKER: reranker}, **options}
        system["blend"] = blend
    return {
        "system": system,
        "roles": {name: (name,) for name in STRATEGIES},
        "ties": "first_seen",
        "settings": SETTINGS,
        **options,
    }
