"""Score by rank: what a document gets at each rank of two lists.

Solid: only one list returns the document. Dashed: both lists rank it there. The lists have 20
documents each; scores fall from 20 to 6 in the one and from .9 to .5 in the other.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import fusion_bench as fb

RANKS = range(1, 21)
SCORES = {"bm25": np.geomspace(20, 6, 20), "dense": np.linspace(0.9, 0.5, 20)}
ROLES = {"bm25": frozenset({"keyword"}), "dense": frozenset({"question", "semantic"})}


def draw(method: str, changes: dict[str, dict[str, Any]]) -> Figure:
    """One panel a parameter, one color a value of it."""
    figure, panels = plt.subplots(1, len(changes), figsize=(3.3 * len(changes), 2.8), squeeze=False)
    for panel, (title, values) in zip(panels[0], changes.items(), strict=True):
        for i, (label, options) in enumerate(values.items()):
            for prefix, style in (("bm25", "-"), ("", "--")):
                names = {"bm25": [f"{prefix}{r}" for r in RANKS], "dense": [str(r) for r in RANKS]}
                runs = [
                    fb.Run.from_rows(name, ["q"] * 20, names[name], scores, roles=ROLES[name])
                    for name, scores in SCORES.items()
                ]
                fused = fb.fuse(runs, method, **options).to_dict()["q"]
                heights = [fused.get(document, np.nan) for document in names["bm25"]]
                panel.plot(RANKS, heights, style, color=f"C{i}", label=label if prefix else None)
        panel.set(title=title, xlabel="rank", ylabel="fused score", xticks=range(1, 21, 3))
        panel.legend(fontsize=8)
    return figure
