"""The work of a judge as JSON."""

from __future__ import annotations

from typing import Any, Final

from fusion_bench.judge.judge_work import JudgeWork
from fusion_bench.judge.pool.pool import Pair

#: What is said of the comparison that judging is to decide.
PLAN_FIELDS: Final = (
    *("measure", "baseline", "candidate", "queries", "difference", "low", "high", "is_exact"),
    *("answer", "low_answer", "high_answer", "is_decided"),
)


def describe_work(work: JudgeWork) -> dict[str, Any]:
    """The documents that are asked for, and what they could change."""
    plan, effects = work.plan, list_effects(work)
    record: dict[str, Any] = {"dataset": work.judged.dataset.name, "judge": work.options.judge}
    if plan is not None:
        record["plan"] = {
            **{name: getattr(plan, name) for name in PLAN_FIELDS},
            "documents": len(plan.documents),
            "ignored_queries": plan.ignored_queries,
        }
    record["max_grade"] = work.task.greatest
    record["documents"] = [
        {
            "query": each.query,
            "document": each.document,
            "best_rank": each.best_rank,
            **({"effect": effects[each.pair]} if each.pair in effects else {}),
        }
        for each in work.documents()
    ]
    return record


def list_effects(work: JudgeWork) -> dict[Pair, float]:
    """How far each document could move the difference of its query; empty for a pool."""
    documents = () if work.plan is None else work.plan.documents
    return {each.document.pair: each.effect for each in documents}
