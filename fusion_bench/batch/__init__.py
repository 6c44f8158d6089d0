"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.batch.limits import BatchLimits
from fusion_bench.batch.ranked_lists import RankedLists, rank_system
from fusion_bench.batch.system_plans import SystemSpec, Unsupported
from fusion_bench.batch.systems import BatchResult, evaluate_batch

__all__ = [
    "BatchLimits",
    "BatchResult",
    "RankedLists",
    "SystemSpec",
    "Unsupported",
    "evaluate_batch",
    "rank_system",
]
