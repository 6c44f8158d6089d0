"""What was made: printed at the end, and copied by hand into the datasheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import ir_measures
from texts import SPLITS, Sentence

from fusion_bench.models.retrieval import Ranking


def print_counts(counts: Counter[str], queries: Sequence[Sentence]) -> None:
    """How the queries came about, and how many there are of what in each split."""
    for what, count in counts.items():
        print(f"{count:7,}  {what}")
    print(f"{'split':8}{'queries':>9}{'groups':>8}{'families':>10}")
    for split, _ in SPLITS:
        own = [q for q in queries if q.split == split]
        groups, families = {q.group for q in own}, {q.family for q in own}
        print(f"{split:8}{len(own):9,}{len(groups):8,}{len(families):10,}")


def print_lists(
    lists: dict[str, dict[str, Ranking]],
    judged: dict[str, dict[str, int]],
    queries: Sequence[Sentence],
) -> None:
    """nDCG@10 of each list on each split, by ir_measures."""
    print(f"{'list':8}{'lines':>10}{'queries':>9}" + "".join(f"{s:>8}" for s, _ in SPLITS))
    for name, ranked in lists.items():
        run = {query: dict(ranking) for query, ranking in ranked.items() if ranking}
        values = []
        for split, _ in SPLITS:
            qrels = {q.id: judged[q.id] for q in queries if q.split == split}
            values.append(ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run))
        shown = "".join(f"{next(iter(value.values())):8.4f}" for value in values)
        print(f"{name:8}{sum(map(len, run.values())):10,}{len(run):9,}{shown}")


def print_files(root: Path, files: Sequence[str]) -> None:
    """Sizes in bytes."""
    sizes = {name: (root / name).stat().st_size for name in files}
    for name, size in {**sizes, "in all": sum(sizes.values())}.items():
        print(f"{size:12,}  {name}")
