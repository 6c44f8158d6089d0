"""Weights by query: what a policy makes of the two lists of a query.

Solid: the keyword list. Dashed: the semantic one. Read off documents that one list ranks first.
"""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import fusion_bench as fb


def weigh(scene: str, x: float, policy: dict[str, Any]) -> tuple[float, float]:
    """The weights of the lists (bm25, dense) at one point of the horizontal axis."""
    falling = [20 * (1 - i / 10) ** (x if scene.startswith("exponent") else 1) for i in range(10)]
    flat = [0.5 + (x if scene == "top margin" else 0.05)] + [0.5] * 9
    shared = 10 * x if scene == "documents in common" else 5
    own, common = [f"d{i}" for i in range(9)], [f"{'de'[i >= shared]}{i}" for i in range(9)]
    lists = {"bm25": ("keyword", ["k", *own], falling), "dense": ("semantic", ["s", *common], flat)}
    runs = [
        fb.Run.from_rows(name, ["q"] * 10, documents, scores, roles=frozenset({role}))
        for name, (role, documents, scores) in lists.items()
    ]
    fused = fb.fuse(runs, "rrf", k=60, policy=policy).to_dict()["q"]
    return 61 * fused.get("k", 0), 61 * fused.get("s", 0)


def draw(method: str, scene: str, points: list[float], settings: list[dict[str, Any]]) -> Figure:
    """One color a setting."""
    figure, panel = plt.subplots(figsize=(4.6, 3))
    for i, options in enumerate(settings):
        weights = [weigh(scene, x, {"method": method, **options}) for x in points]
        label = "{} {}".format(*next(iter(options.items())))
        panel.plot(points, [row[0] for row in weights], color=f"C{i}", label=label)
        panel.plot(points, [row[1] for row in weights], "--", color=f"C{i}")
    panel.set(title=method, xlabel=scene, ylabel="weight")
    panel.legend()
    return figure
