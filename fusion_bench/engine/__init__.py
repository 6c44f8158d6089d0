"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.engine.batch import evaluate
from fusion_bench.engine.blends import Asked, Counted
from fusion_bench.engine.placed import Refusal

__all__ = ["Asked", "Counted", "Refusal", "evaluate"]
