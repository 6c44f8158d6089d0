"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""

from fusion_bench.engine.batch import Refusal, evaluate

__all__ = ["Refusal", "evaluate"]
