"""Differences: what `fb.compare` shows of several fusions on the built-in collection `referee`.

Each bar is the mean difference from plain RRF with its 95 % interval. The intervals hold for all
comparisons together.
"""

from pathlib import Path

from matplotlib.figure import Figure

import fusion_bench as fb

DATASET = fb.load_dataset(Path(__file__).parents[2] / "datasets/referee")
RUNS = {name: DATASET.runs[name] for name in ("question", "bm25", "graph")}


def draw() -> Figure:
    """The picture that `eval` writes, too."""
    systems = {
        "rrf": "rrf",
        "rrf, k = 10": fb.rrf(10),
        "question twice": ("rrf", {"weights": {"question": 2}}),
        "min-max": ("weighted_score", {"normalize": "min_max", "missing": "zero"}),
        "z-score": ("weighted_score", {"normalize": "z_score", "missing": "min"}),
        "isr": "isr",
        "borda": "borda",
    }
    comparisons = fb.compare(DATASET, RUNS, systems, measures="nDCG@10")
    return fb.plot(comparisons, "forest")
