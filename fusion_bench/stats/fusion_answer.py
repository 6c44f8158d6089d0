"""Whether fusing pays: every fusion against every single source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.comparison import paired_difference
from fusion_bench.stats.corrections import Correction, infer_family
from fusion_bench.stats.max_t import FamilyRow, RowResult
from fusion_bench.stats.trials.trial_variance import TrialTerm

#: The family is large, and one verdict is drawn from it: what is open then is not shown.
MOST_FUSION_DRAWS = 160_000
FusionVerdict: TypeAlias = Literal["pays", "loses", "not shown"]


@dataclass(frozen=True)
class FusionAnswer:
    """What the family of fusions × sources shows.

    Attributes:
        verdict: ``pays``: some fusion is better than every source. ``loses``: some source is
            better than every fusion. Else ``not shown``.
        fusion: The fusion that pays; else the one with the highest mean.
        source: The source that no fusion reaches; else the one with the highest mean.
        difference: Mean of that fusion − that source.
        low: Lower end of its interval, which holds together with those of the whole family.
        high: Upper end.
        p: Adjusted over the family.
    """

    verdict: FusionVerdict
    fusion: str
    source: str
    difference: float
    low: float
    high: float
    p: float


def decide_fusion(
    fusions: Mapping[str, FloatArray],
    sources: Mapping[str, FloatArray],
    keys: tuple[str, ...],
    *,
    correction: Correction = "max_t",
    seed: int = 0,
    alpha: float = 0.05,
    trial_terms: Mapping[tuple[str, str], tuple[TrialTerm, ...]] | None = None,
) -> FusionAnswer:
    """Compare every fusion with every single source, as one family.

    Args:
        fusions: Per fusion, shape (Q,); at least one.
        sources: Per source, shape (Q,); at least one.
        keys: The group id of each query.
        correction: How the size of the family is accounted for.
        seed: Seed of the flips.
        alpha: Level.
        trial_terms: What the trials of a fusion and of a source add to the variance of their
            difference; without an entry nothing.
    """
    terms = trial_terms or {}
    pairs = [(fusion, source) for fusion in fusions for source in sources]
    rows = [
        FamilyRow(
            paired_difference(fusions[f], sources[s]), keys, trial_terms=terms.get((f, s), ())
        )
        for f, s in pairs
    ]
    results, _ = infer_family(
        rows, correction=correction, seed=seed, alpha=alpha, most_draws=MOST_FUSION_DRAWS
    )
    by_pair = dict(zip(pairs, results, strict=True))
    signs = {pair: _shown_sign(row, alpha) for pair, row in by_pair.items()}

    def highest(values: Mapping[str, FloatArray], names: list[str]) -> str:
        return max(names or list(values), key=lambda name: float(values[name].mean()))

    paying = [f for f in fusions if all(signs[f, s] > 0 for s in sources)]
    losing = [s for s in sources if all(signs[f, s] < 0 for f in fusions)]
    fusion, source = highest(fusions, paying), highest(sources, losing)
    row = by_pair[fusion, source]
    verdict: FusionVerdict = "pays" if paying else "loses" if losing else "not shown"
    return FusionAnswer(verdict, fusion, source, row.estimate.mean, row.low, row.high, row.p)


def _shown_sign(row: RowResult, alpha: float) -> int:
    """The sign of a difference that is shown; 0 = none is."""
    if row.p > alpha or row.decision == "open":
        return 0
    return 1 if row.estimate.mean > 0 else -1
