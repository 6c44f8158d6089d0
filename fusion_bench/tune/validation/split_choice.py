"""Which queries decide: the dataset's own split, a held-out share, or all by cross-fitting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import Query
from fusion_bench.experiment.tune_settings import TuneSettings
from fusion_bench.report.tuning_records.split_choice import SplitChoice, SplitDesign
from fusion_bench.tune.validation.all_queries.simulated_power import nearest_power
from fusion_bench.tune.validation.splits import (
    JUDGE_ON,
    TUNE_ON,
    QuerySplit,
    dataset_split,
    split_queries,
)

#: With fewer queries ``held_out: auto`` uses all of them, else it holds out half.
FEW_QUERIES: Final = 150
HALF: Final = 0.5


def choose_split(
    runs: AlignedRuns, known: Mapping[str, Query], tuning: TuneSettings
) -> tuple[QuerySplit, SplitChoice]:
    """Split the queries as ``tune.held_out`` says.

    Args:
        runs: All judged queries that take part.
        known: What the dataset says about them.
        tuning: Of its settings, some exclude cross-fitting.

    Raises:
        ConfigError: See :func:`split_queries`.
    """
    asked, count = tuning.held_out, len(runs.queries)
    obstacle, is_few = tuning.cross_fitting_obstacle, count < FEW_QUERIES
    resolved = asked
    if resolved == "auto":
        has_splits = dataset_split(runs.queries, known) is not None
        resolved = "all" if is_few and obstacle is None and not has_splits else HALF
    split = split_queries(runs, known, split_seed=tuning.split_seed, held_out=resolved)
    design: SplitDesign = "share" if split.split_seed is not None else "dataset"
    design = "all" if split.is_cross_fitted else design
    return split, SplitChoice(
        asked=asked,
        design=design,
        queries=count,
        reason=_explain(count, obstacle, asked=asked, design=design),
        power=nearest_power(count) if is_few and design != "dataset" else (),
    )


def _explain(
    count: int, obstacle: tuple[str, str] | None, *, asked: object, design: SplitDesign
) -> str:
    if design == "dataset":
        return f"the dataset has splits {TUNE_ON} and {JUDGE_ON}"
    if asked != "auto":
        return ""
    if count >= FEW_QUERIES:
        return f"{count:,} queries are {FEW_QUERIES} or more"
    if obstacle is not None:
        return f"{obstacle[0]} is set, and {obstacle[1]}"
    return f"{count:,} queries are fewer than {FEW_QUERIES}"
