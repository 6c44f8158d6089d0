"""Plans of looks at frozen numbers: what they fix, and who keeps to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.tune.looks.ledger import Look, LookPlan


def plan_fractions(looks: Sequence[Look], plan: LookPlan) -> list[float]:
    """The information fraction of each look of a plan: its held-out queries ÷ ``max_queries``."""
    return [len(look.queries) / plan.max_queries for look in looks]


def check_plan(earlier: Sequence[Look], wanted: int | None, path: Path) -> LookPlan | None:
    """The plan that earlier looks belong to; None = there is none yet.

    Args:
        earlier: The looks that share held-out queries with the one to come.
        wanted: ``max_queries`` of the experiment; None = no plan.
        path: The ledger, for messages.

    Raises:
        ConfigError: The plan was declared after the first look, or is not kept to.
    """
    if not earlier:
        return None
    plan = earlier[0].plan
    if plan is None and wanted is None:
        return None
    if plan is None:
        raise ConfigError(
            f"tune.looks.max_queries: must be declared before the first look, but {path} has "
            f"{len(earlier)} at these held-out queries: delete the key, or hold out other queries"
        )
    if wanted != plan.max_queries:
        given = "is missing" if wanted is None else f"is {wanted}"
        raise ConfigError(
            f"tune.looks.max_queries: {given}, but {path} has a plan of {plan.max_queries} "
            f"held-out queries: write 'looks: {{max_queries: {plan.max_queries}}}', or hold out "
            "other queries"
        )
    return plan
