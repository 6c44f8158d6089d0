"""Joint coverage: all intervals of a family hold, whatever the true differences are."""

from __future__ import annotations

import numpy as np

from benchmarks.studies.simulations.max_t import critical_t, find_critical
from benchmarks.studies.simulations.promise import Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import t_quantile
from fusion_bench.stats.sign_flips import draw_flips, hash_group_ids

TITLE = "Joint coverage"
DESCRIPTION = """
Systems against a baseline on n queries, all with the same true difference, in standard deviations
of the differences. Normal: normal differences of correlation .1 or .5. Sparse: correlation .5, of
each system 60 % of the errors are 0 and the others Laplace. Promised: all intervals of the family
hold their true differences in at least 94 % of the runs. "Flips of the differences alone" is the
rule without those of the residuals, on the same data. Both use 1,000 flips instead of 10,000 or
more.
"""
SIZES, SYSTEMS, EFFECTS = (15, 50, 200), (5, 30), (0.0, 0.5, 2.0, 4.0)
KINDS = {"normal, correlation .1": 0.1, "normal, correlation .5": 0.5, "sparse": 0.5}
ALPHA, FLIPS, PROMISED = 0.05, 1_000, 0.94
#: Stands for a standard deviation of 0.
TINY = 1e-300


def run(*, draws: int) -> list[Promise]:
    """Every kind of errors, number of systems and queries, and size of the differences."""
    return [
        promise
        for kind in KINDS
        for systems in SYSTEMS
        for queries in SIZES
        for promise in _run_design(kind, systems, queries, draws)
    ]


def _run_design(kind: str, systems: int, queries: int, draws: int) -> list[Promise]:
    rng = np.random.default_rng([queries, systems, int(10 * KINDS[kind]), kind == "sparse"])
    keys = tuple(f"q{i}" for i in range(queries))
    covered = np.zeros((2, len(EFFECTS)), dtype=np.int64)
    for draw in range(draws):
        errors = draw_errors(rng, kind, systems, queries)
        critical = critical_values(errors, keys, seed=draw)
        spread = np.maximum(errors.std(axis=1, ddof=1), TINY)
        t = np.abs(errors.mean(axis=1)) / spread * np.sqrt(queries)
        covered += t.max() <= critical
    design = f"{kind}, {systems} systems, {queries} queries"
    promises = []
    for effect, joint, alone in zip(EFFECTS, *covered.tolist(), strict=True):
        name = f"{design}, {effect:g} sd"
        promises.append(Promise(name, "all covered", joint, draws, PROMISED, "at least"))
        if effect == 2 and systems == max(SYSTEMS):
            event = "all covered, flips of the differences alone"
            promises.append(Promise(name, event, alone, draws))
    return promises


def draw_errors(rng: np.random.Generator, kind: str, systems: int, queries: int) -> FloatArray:
    """(systems, queries): correlated errors of standard deviation 1."""
    size, correlation = (systems, queries), KINDS[kind]
    if kind != "sparse":
        shared, alone = rng.standard_normal(queries), rng.standard_normal(size)
        return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * alone)
    is_shared = rng.random(size) < correlation
    values = np.where(is_shared, rng.laplace(size=queries), rng.laplace(size=size))
    return np.asarray(values * (rng.random(size) < 0.4) / np.sqrt(0.8))


def critical_values(errors: FloatArray, keys: tuple[str, ...], *, seed: int) -> FloatArray:
    """(2, E): the c of ``stats.max_t`` by effect, and that without flips of residuals."""
    flips = 2 * draw_flips(hash_group_ids(seed, keys), 0, FLIPS) - 1
    sums, ones, queries = errors @ flips, flips.sum(axis=0), len(keys)
    means = errors.mean(axis=1, keepdims=True)
    residuals = _largest(sums - means * ones, errors - means)
    least = t_quantile(queries - 1, 1 - ALPHA / 2)
    critical = np.empty((2, len(EFFECTS)))
    for i, effect in enumerate(EFFECTS):
        values = errors + effect
        observed = float(_largest(values.sum(axis=1, keepdims=True), values)[0])
        alone, joint = (
            critical_t(find_critical(np.append(largest, observed)), queries)
            for largest in (_largest(sums + effect * ones, values), residuals)
        )
        critical[:, i] = max(joint, alone, least), max(alone, least)
    return critical


def _largest(sums: FloatArray, values: FloatArray) -> FloatArray:
    """(B,): the largest |Σ d| / √Σ d² of the systems after each flip."""
    spread = np.maximum(np.sqrt((values**2).sum(axis=1)), TINY)
    return np.asarray((np.abs(sums) / spread[:, None]).max(axis=0))
