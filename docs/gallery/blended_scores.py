"""Blended scores: the final score by fused rank, for documents that the reranker scores alike.

Where a line of a lower rerank score lies above another one, no rerank score can change the order.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import fusion_bench as fb

DOCUMENTS = [f"d{i:02}" for i in range(20)]
RANKS = range(1, 21)


def draw(method: str, changes: dict[str, list[dict[str, object]]]) -> Figure:
    """One panel a setting, one color a rerank score."""
    lists = {name: {"q": {d: 20.0 - i for i, d in enumerate(DOCUMENTS)}} for name in ("a", "b")}
    figure, panels = plt.subplots(1, len(changes), figsize=(3.4 * len(changes), 3.2), squeeze=False)
    for panel, (title, [options]) in zip(panels[0], changes.items(), strict=True):
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
        panel.set(title=title, xlabel="fused rank", xticks=range(1, 21, 3))
    panels[0][0].set_ylabel("final score")
    panels[0][0].legend(fontsize=8)
    return figure
