"""Options of judging: who judges what, in which order."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from fusion_bench.config.options import Count, Depth, Name, Option, Options, Seed

OrderName: TypeAlias = Literal["pool", "system", "move-to-front", "uncertainty", "random"]
CombineName: TypeAlias = Literal["majority", "mean", "first"]


class JudgeOptions(Options):
    """Options of ``judge``: the judge, the documents and their order.

    Attributes:
        judge: Name of the judge; each has a file.
        budget: Only documents that could still change the comparison, so many at most.
        depth: Depth of the pool.
        order: Order of the pool; random hides the ranks.
        measure: With --next: the measure. Default: the primary one.
        baseline: With --next. Default: the experiment's.
        candidate: With --next. Default: the best other system.
        max_grade: Greatest grade. Default: the greatest of the judgments.
        seed: Seed of the random order.
    """

    judge: Name = "judge"
    budget: Annotated[int, Option("--next", metavar="BUDGET", min=1)] | None = None
    depth: Depth = 10
    order: OrderName = "random"
    measure: Name | None = None
    baseline: Name | None = None
    candidate: Name | None = None
    max_grade: Count | None = None
    seed: Seed = 0
