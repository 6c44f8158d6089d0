"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.batch.blended_systems import Asked, Counted
from fusion_bench.batch.fused_systems import evaluate
from fusion_bench.batch.relevant_ranks import Refusal

__all__ = ["Asked", "Counted", "Refusal", "evaluate"]
