"""Lists of a live engine: each leg alone, and the engine's own fused answer, as a dataset."""
