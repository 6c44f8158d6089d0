"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.batch.blended_systems import Counted
from fusion_bench.batch.fused_systems import evaluate
from fusion_bench.batch.ranked_lists import RankedLists, rank_system
from fusion_bench.batch.relevant_ranks import Unsupported
from fusion_bench.batch.system_plans import SystemSpec

__all__ = ["Counted", "RankedLists", "SystemSpec", "Unsupported", "evaluate", "rank_system"]
