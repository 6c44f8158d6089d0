"""Normalized scores: where each score of a list goes.

The list has 20 documents. Its scores fall fast, as those of BM25 often do.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import fusion_bench as fb

SCORES = np.geomspace(20, 2, 20)


def draw(method: str, changes: dict[str, dict[str, Any]]) -> Figure:
    """One panel a parameter, one color a value of it."""
    run = {"q": {f"d{i:02}": score for i, score in enumerate(SCORES)}}
    figure, panels = plt.subplots(1, len(changes), figsize=(3.3 * len(changes), 2.8), squeeze=False)
    for panel, (title, values) in zip(panels[0], changes.items(), strict=True):
        for label, options in values.items():
            normalizer = {"method": method, **options}
            fused = fb.fuse({"bm25": run}, "comb_sum", normalize=normalizer).to_dict()["q"]
            heights = [fused[document] for document in run["q"]]
            panel.plot(SCORES, heights, ".-", label=label)
        panel.set(title=title, xlabel="score in the list", ylabel="normalized score")
        panel.legend(fontsize=8)
    return figure
