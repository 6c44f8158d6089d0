"""The fields of a list's record that its scores and ranks decide."""

from __future__ import annotations

from typing import Any

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.run import Run
from fusion_bench.evaluation.list_checks.rank_column import compare_rank_column
from fusion_bench.evaluation.list_checks.read_backwards import measure_both_orders
from fusion_bench.evaluation.list_checks.score_facts import (
    count_changed_by_float32,
    count_constant_lists,
    lowest_score,
)
from fusion_bench.io.dataset import Dataset


def list_facts(dataset: Dataset, run: Run, aligned: AlignedRuns) -> dict[str, Any]:
    """Fields of a :class:`~fusion_bench.evaluation.report_records.list_info.ListInfo`.

    Args:
        dataset: With the list.
        run: The list: a source or a rerank list.
        aligned: With the list among its sources or rerank lists, if it is used.
    """
    judged = set(dataset.qrels.queries)
    is_source = dataset.runs.get(run.name) is run
    names, ranks = (
        (aligned.sources, aligned.ranks) if is_source else (aligned.rerankers, aligned.rerank_ranks)
    )
    facts: dict[str, Any] = {
        "constant_lists": count_constant_lists(run, judged),
        "float32_queries": count_changed_by_float32(run, judged),
        "lowest_score": lowest_score(run),
    }
    is_used = run.name in names
    both = measure_both_orders(aligned, ranks[names.index(run.name)]) if is_used else None
    if both is not None:
        facts |= {
            "mean_as_read": both.as_read,
            "mean_backwards": both.backwards,
            # Of lists with equal scores alone, the order is the tie rule's.
            "is_reversed": both.is_reversed and 2 * facts["constant_lists"] < both.queries,
        }
    file = dataset.files.get(f"{'runs' if is_source else 'rerank'}/{run.name}")
    if file is not None and run.read_options.rank_from == "score":
        column = compare_rank_column(file.path, file.layout)
        if column is not None:
            facts |= {"rank_column_lists": column.lists, "opposed_rank_lists": column.opposed}
    return facts
