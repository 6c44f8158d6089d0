"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.batch.blended_systems import BatchResult
from fusion_bench.batch.fused_systems import evaluate_batch
from fusion_bench.batch.ranked_lists import RankedLists, rank_system
from fusion_bench.batch.relevant_ranks import Unsupported
from fusion_bench.batch.system_plans import SystemSpec

__all__ = [
    "BatchResult",
    "RankedLists",
    "SystemSpec",
    "Unsupported",
    "evaluate_batch",
    "rank_system",
]
