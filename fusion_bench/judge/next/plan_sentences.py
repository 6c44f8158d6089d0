"""What could still change a comparison, in sentences."""

from __future__ import annotations

from fusion_bench.judge.next.plan import JudgingPlan
from fusion_bench.util.formatting import format_number, pluralize


def describe_ends(plan: JudgingPlan) -> str:
    """The difference now, and what judging could make of it."""
    low, now, high = (format_number(v, signed=True) for v in (plan.low, plan.difference, plan.high))
    ends = "Judging could make it" if plan.is_exact else "Judging keeps it within"
    pair = f"{plan.candidate} - {plan.baseline}, {plan.measure}"
    return (
        f"{pair}: {now} over {pluralize(plan.queries, 'query')} ({plan.answer}). "
        f"{ends} {low} ({plan.low_answer}) to {high} ({plan.high_answer})."
    )


def describe_rest(plan: JudgingPlan, asked: int) -> str:
    """Whether anything is left that could change the answer.

    Args:
        plan: What could change it.
        asked: Documents that are asked for.
    """
    answers = {plan.low_answer, plan.answer, plan.high_answer}
    answer = plan.answer if len(answers) == 1 else "not shown"  # equal lists show nothing, too
    if plan.is_decided:
        return f"Nothing left could change the answer: {answer}."
    if plan.has_one_answer:
        compared = pluralize(plan.queries, "compared query")
        return f"On the {compared} alone, nothing could change it: {answer}."
    total = pluralize(len(plan.documents), "document")
    return f"{total} could still change it; the first {asked:,} change most."
