"""Detectable difference: the least true difference in nDCG@10 that `eval` finds with power .8.

Each line is a standard deviation of the paired differences of two systems. Four times as many
queries find half the difference.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import fusion_bench as fb

QUERIES = [50, 100, 200, 500, 1000, 2000, 5000, 10000]


def draw() -> Figure:
    """One line a standard deviation."""
    figure, panel = plt.subplots(figsize=(5.6, 3.2))
    for sd in (0.05, 0.1, 0.2):
        plans = [fb.power(sd=sd, queries=count, differences=[0.01]) for count in QUERIES]
        least = [plan.rules[0].detectable or float("nan") for plan in plans]
        panel.plot(QUERIES, least, ".-", label=f"sd {sd:g}")
    panel.set(xlabel="queries", ylabel="detectable difference", xscale="log", yscale="log")
    panel.legend()
    return figure
