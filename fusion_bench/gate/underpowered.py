"""What a check cannot guard, in one line, so that nobody relies on it.

``regressed`` asks for a mean below −m, so the smallest drop that is seen four times in five is
greater than m however many queries there are. Up to about 1.4 m the tolerance itself decides;
beyond that it is noise, which the square root of the number of queries divides.
"""

from __future__ import annotations

from math import ceil

from fusion_bench.gate.result import CheckResult
from fusion_bench.util.formatting import counted
from fusion_bench.util.numbers import number

__all__ = ["needed", "wish"]

#: A detectable drop beyond so many tolerances is the work of noise.
NOISY = 1.5


def wish(check: CheckResult) -> str | None:
    """Why a check cannot guard its tolerance; None = it can, or nothing tells.

    Args:
        check: With the powers of the rule. Fewer than ten changed queries say nothing of them.
    """
    if check.detectable is None or check.few or check.detectable <= NOISY * check.max_drop:
        return None
    grouped = f" in {counted(check.groups, 'group')}" if check.groups < check.queries else ""
    return (
        f"with {counted(check.queries, 'query')}{grouped} only drops of "
        f"{number(check.detectable)} or more are seen 4 times in 5; max_drop {check.max_drop:g} "
        f"is a wish: {needed(check)}"
    )


def needed(check: CheckResult) -> str:
    """How many queries would do, to two digits: until noise is no greater than the tolerance."""
    if not check.max_drop:
        return "no number of queries would do"
    queries = ceil(check.queries * ((check.detectable or 0.0) / check.max_drop) ** 2)
    unit = 10 ** max(0, len(str(queries)) - 2)
    return f"about {ceil(queries / unit) * unit:,} queries would be needed"
