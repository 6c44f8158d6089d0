"""Quality by k: how much nDCG@10 changes with k on the built-in collection `referee`.

Each point is the mean difference from k = 60 over the same queries, with its 95 % interval. The
intervals are not adjusted for the number of points.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import fusion_bench as fb

DATASET = fb.load_dataset(Path(__file__).parents[2] / "datasets/referee")
SOURCES = ["question", "bm25"]
CONSTANTS = [1, 2, 5, 10, 20, 40, 60, 100, 200, 500, 1000]


def draw() -> Figure:
    """Mean difference and interval at each k."""
    runs = fb.align_runs(DATASET.qrels, [DATASET.runs[name] for name in SOURCES])
    systems = [fb.System(f"k={k}", SOURCES, fusion={"method": "rrf", "k": k}) for k in CONSTANTS]
    scores = fb.evaluate_systems(systems, runs, "nDCG@10")
    values = np.array([item.values[0] for item in scores])
    differences = values - values[CONSTANTS.index(60)]
    errors = 1.96 * differences.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    figure, panel = plt.subplots(figsize=(5.6, 3.2))
    panel.axhline(0, color="0.7")
    panel.errorbar(CONSTANTS, differences.mean(axis=1), errors, fmt="o-", capsize=3)
    panel.set(xlabel="k", ylabel="difference in nDCG@10", xscale="log")
    return figure
