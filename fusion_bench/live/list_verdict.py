"""CRAG's verdict on the final list of one query."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from fusion_bench.data.records import Query, ScoreSpace
from fusion_bench.evaluation.crag.evidence import ABSOLUTE
from fusion_bench.evaluation.crag.verdicts import CragThresholds, CragVerdict, judge_list
from fusion_bench.experiment.crag_settings import CragRule
from fusion_bench.experiment.system import System
from fusion_bench.live.results import LiveDocument


def judge_documents(
    documents: Sequence[LiveDocument],
    query: Query,
    system: System,
    spaces: Mapping[str, ScoreSpace],
    rule: CragRule | None,
    unread: Collection[str] = (),
) -> CragVerdict | None:
    """The verdict that ``eval`` would give the list.

    Args:
        documents: Best first.
        query: Its field ``refined_query`` is what to search instead.
        system: The plain system that ranked them.
        spaces: Score space of each rerank list.
        rule: The thresholds; None = not asked for.
        unread: Ids of documents whose score could not be read, which say nothing.

    Returns:
        None where it was not asked for, where nothing was reranked or no score could be read, or
        where the scores of the rerank list mean something within a query only.
    """
    scores = [
        math.nan if each.rerank_score is None or each.id in unread else each.rerank_score
        for each in documents
    ]
    space = spaces.get(system.blend.reranker_name or "")
    if rule is None or space not in ABSOLUTE or all(map(math.isnan, scores)):
        return None
    return judge_list(
        scores,
        CragThresholds(rule.upper, rule.lower),
        top=rule.top,
        refined_query=query.fields.get("refined_query"),
    )
