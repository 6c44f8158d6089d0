"""Values of systems that answer differently each time."""

import numpy as np

from fusion_bench.data.ordering import FloatArray


def crossed(
    trials: int,
    queries: int,
    *,
    query_sd: float = 0.3,
    trial_sd: float = 0.0,
    residual_sd: float = 0.1,
    seed: int = 0,
) -> FloatArray:
    """Values of shape (T, Q) with normal effects of queries, trials, and trials on queries."""
    rng = np.random.default_rng(seed)
    return np.asarray(
        query_sd * rng.standard_normal(queries)
        + trial_sd * rng.standard_normal((trials, 1))
        + residual_sd * rng.standard_normal((trials, queries))
    )
