"""Learned scores: the mean score of the documents at each rank of the keyword list.

The method learns from the judgments of the built-in collection `referee`; each query is scored by
what the other folds taught.
"""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import fusion_bench as fb

DATASET = fb.load_dataset(Path(__file__).parents[2] / "datasets/referee")
RANKS = range(1, 31)


def draw(method: str, settings: list[dict[str, Any]]) -> Figure:
    """One color a setting."""
    lists = DATASET.runs["bm25"].to_dict()
    figure, panel = plt.subplots(figsize=(4.6, 3))
    for options in settings:
        system = fb.System(method, ["bm25", "question"], fusion={"method": method, **options})
        fused = fb.fuse(DATASET, system).to_dict()
        by_rank: list[list[float]] = [[] for _ in RANKS]
        for query, ranked in lists.items():
            for scores, document in zip(by_rank, ranked, strict=False):
                scores.append(fused[query][document])
        label = ", ".join(f"{key} {value}" for key, value in options.items()) or "defaults"
        panel.plot(RANKS, [np.mean(scores) for scores in by_rank], ".-", label=label)
    panel.set(title=method, xlabel="rank in bm25", ylabel="mean fused score")
    panel.legend(fontsize=8)
    return figure
