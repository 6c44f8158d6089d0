"""Blended scores: the final score by fused rank, for documents that the reranker scores alike.

Where a line of a lower rerank score lies above another one, no rerank score can change the order.
"""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import fusion_bench as fb

DOCUMENTS = [f"d{i:02}" for i in range(20)]
RANKS = range(1, 21)


def draw(method: str, changes: dict[str, dict[str, Any]]) -> Figure:
    """One panel a setting, one color a rerank score."""
    lists = {name: {"q": {d: 20.0 - i for i, d in enumerate(DOCUMENTS)}} for name in ("a", "b")}
    rows = (len(changes) + 1) // 2
    figure, panels = plt.subplots(rows, 2, figsize=(6.8, 2.8 * rows), squeeze=False)
    for panel, (title, options) in zip(panels.flat, changes.items(), strict=False):
        for score in (1.0, 0.5, 0.0):
            blended = fb.fuse(
                lists,
                "rrf",
                blend={"method": method, "reranker": "r", **options},
                rerankers={"r": {"q": dict.fromkeys(DOCUMENTS, score)}},
                score_spaces={"r": "unit"},
            ).to_dict()["q"]
            heights = [blended[document] for document in DOCUMENTS]
            panel.plot(RANKS, heights, ".-", label=f"rerank score {score:g}")
        panel.set(title=title, xlabel="fused rank", ylabel="final score", xticks=range(1, 21, 3))
        panel.legend(fontsize=7)
    for panel in panels.flat[len(changes) :]:
        panel.set_visible(False)
    return figure
