"""The tiny dataset with list ``a`` in three trials, as the files of a glob."""

from pathlib import Path

from tests import tiny
from tests.tiny import DATASET, edit

FIRST = tiny.FILES["datasets/tiny/a.trec"]
SECOND = FIRST.replace("q1 Q0 d2 1 9", "q1 Q0 d2 1 7")  # q1: d1 first
THIRD = FIRST.replace("q4 Q0 d5 1 5 a\nq4 Q0 d4 2 4 a\n", "")  # nothing for q4
TRIALS = (FIRST, SECOND, THIRD)

SYSTEMS = """\
dataset: tiny
split: all
measures: [RR@10, nDCG@10]
baseline: b
systems:
  a: {runs: [a]}
  b: {runs: [b]}
  both: {runs: [a, b]}
"""


def make(root: Path, *texts: str, pattern: str = "a-*.trec", options: str = "") -> Path:
    """Write the dataset with trials of ``a``, numbered from 1; its ``dataset.yaml``."""
    tiny.make(root, e=SYSTEMS)
    edit(root, DATASET, "path: a.trec", f'path: "{pattern}"{options}')
    for number, text in enumerate(texts, 1):
        (root / f"datasets/tiny/a-{number}.trec").write_text(text, encoding="utf-8")
    return root / DATASET


def make_plain(root: Path, text: str) -> Path:
    tiny.make(root, e=SYSTEMS, a=text)
    return root / DATASET
