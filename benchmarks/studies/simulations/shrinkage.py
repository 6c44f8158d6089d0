"""How far shipped gains are from the truth: the plain held-out gain, and the shrunken one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.collections import build_objective, load_attack, load_collection
from benchmarks.studies.simulations.promise import Estimate, Promise
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.tune.cross_fitting import adopt_fit, cross_fit
from fusion_bench.tune.gains import PairedValues, estimate_family, paired_gain
from fusion_bench.tune.sensitivity import sample_uniformly
from fusion_bench.tune.trial_selection import LEVEL, PRIOR_WEIGHT, decide_verdict, shrink_gain

TITLE = "Shipped gains, plain and shrunken"
DESCRIPTION = """
n queries are drawn without replacement from a real collection; half are tuned on, half are held
out. The trials are RRF's default (k 60, equal weights) and 100 random values of k and the weights.
The rule of tune chooses a trial and gives the verdict at level 2.5 %. The error of a shipped gain
is the estimate − the gain over the whole collection, as a mean over the draws that ship. With
"any default" the default is a random one of the trials, so that true gains are larger. With
"cross-fitted" all n queries choose the trial; the estimate is the cross-fitted gain, tested by 199
flips, and the truth that of the chosen trial. Of attack, one query of each technique is taken.
"Normal" are differences of one trial, with standard deviation .15 and a true gain of so many
standard errors (se) of the held-out mean. Required: the mean error of the shrunken gain is at most
.012, or 40 % of the plain one's where that is more, within two Monte Carlo standard errors.
"""
#: Random parameter sets beside the default.
TRIALS = 100
#: Made differences: how many, their standard deviation, and true gains in standard errors.
POPULATION, SD, SHIFTS = 20_000, 0.15, (1, 2, 3, 5)
#: Of cross-fitting.
FOLDS, FLIPS = 5, 199


@dataclass(frozen=True, eq=False)
class Design:
    """A collection and a number of queries.

    Attributes:
        name: In the table.
        values: Shape (T, Q): each trial on each query, the default first.
        queries: n.
        any_default: Whether any trial may be the default.
        is_cross_fitted: Whether every query is held out once, instead of half of them.
    """

    name: str
    values: FloatArray
    queries: int
    any_default: bool = False
    is_cross_fitted: bool = False


def list_designs() -> list[Design]:
    """All that are run; FUSION_BENCH_PARITY_DATA names the folder of jqara."""
    jqara, attack = (load_values(name) for name in ("jqara", "attack"))
    designs = [Design(f"jqara, n = {n}", jqara, n) for n in (40, 60, 100, 200)]
    designs += [Design(f"jqara, any default, n = {n}", jqara, n, True) for n in (40, 100)]
    designs += [Design(f"attack, n = {n}", attack, n) for n in (40, 100)]
    designs += [make_normal(n, shift) for n in (40, 100, 200) for shift in SHIFTS]
    return designs + [
        Design(f"{name}, cross-fitted, n = {n}", values, n, is_cross_fitted=True)
        for name, values in (("jqara", jqara), ("attack", attack))
        for n in (40, 60, 100)
    ]


def make_normal(queries: int, shift: float) -> Design:
    """One trial whose differences to the default are normal."""
    drawn = np.random.default_rng(queries).standard_normal(POPULATION)
    gains = SD * ((drawn - drawn.mean()) / drawn.std() + shift / np.sqrt(queries / 2))
    values = np.stack([np.zeros(POPULATION), gains])
    return Design(f"normal, {shift} se, n = {queries}", values, queries)


def load_values(name: str) -> FloatArray:
    """(T, Q): nDCG@10 of the default and of random parameter sets, one query a group."""
    collection = load_attack(reranked=False) if name == "attack" else load_collection(name)
    objective = build_objective(collection)
    sample = sample_uniformly(objective.parameters, TRIALS, seed=1)
    params = [objective.default_params, *map(objective.normalize_weights, sample)]
    values = np.concatenate([objective.evaluate_params([each]) for each in params])
    _, first = np.unique(objective.runs.group_codes, return_index=True)
    return values[:, np.sort(first)]


def score_trials(differences: FloatArray) -> FloatArray:
    """(T,): ``shrunken_gains`` of (T, Q) differences without groups, all at once."""
    count = differences.shape[1]
    spread = differences.std(axis=1, ddof=1)
    scores = (count * differences.mean(axis=1) - PRIOR_WEIGHT * spread) / (count + PRIOR_WEIGHT)
    return np.where(differences.any(axis=1), scores, 0.0)


def draw_errors(design: Design, rng: np.random.Generator) -> tuple[float, float, float] | None:
    """The true gain of one shipped draw, and the errors of the two estimates; None = no ship."""
    values, half = design.values, design.queries // 2
    order = rng.permutation(values.shape[1])[: design.queries]
    tune, held_out = order[:half], order[half:]
    default = int(rng.integers(len(values))) if design.any_default else 0
    scores = score_trials(values[:, tune] - values[default, tune])
    chosen = int(np.argmax(scores))
    if scores[chosen] <= 0:
        return None
    pair = values[chosen, held_out], values[default, held_out]
    # The verdict's p is never below Student's: most draws need no flips.
    if not estimate_mean(pair[0] - pair[1]).low > 0:
        return None
    [gain] = estimate_family([PairedValues(*pair, tuple(map(str, held_out.tolist())))])
    shrunken = shrink_gain(gain)
    if decide_verdict(gain) != "ship" or shrunken is None:
        return None
    truth = float((values[chosen] - values[default]).mean())
    return truth, gain.difference - truth, shrunken - truth


def draw_cross_fitted_errors(
    design: Design, rng: np.random.Generator
) -> tuple[float, float, float] | None:
    """The same where every query is held out once."""
    picked = rng.permutation(design.values.shape[1])[: design.queries]
    values = design.values[:, picked]
    differences = values[1:] - values[0]
    scores = score_trials(differences)
    chosen = int(np.argmax(scores)) + 1
    if scores[chosen - 1] <= 0:
        return None
    folds = np.arange(design.queries) % FOLDS
    names = list(map(str, picked.tolist()))
    fit = cross_fit(differences, folds, names, flips=FLIPS, seed=int(rng.integers(2**31)))
    if not (fit.mean > 0 and fit.p <= 2 * LEVEL):
        return None
    gain = adopt_fit(paired_gain(values[0] + fit.values, values[0]), fit, is_bounded=True)
    shrunken = shrink_gain(gain)
    if shrunken is None:
        return None
    truth = float((design.values[chosen] - design.values[0]).mean())
    return truth, gain.difference - truth, shrunken - truth


def simulate_design(design: Design, draws: int) -> list[Promise | Estimate]:
    """The share that ships, and means over those draws."""
    rng = np.random.default_rng([design.queries, design.any_default])
    draw = draw_cross_fitted_errors if design.is_cross_fitted else draw_errors
    errors = [e for _ in range(draws) if (e := draw(design, rng)) is not None]
    results: list[Promise | Estimate] = [Promise(design.name, "ship", len(errors), draws)]
    if len(errors) > 1:
        columns = np.array(errors)
        spread = columns.std(axis=0, ddof=1) / np.sqrt(len(columns))
        names = ("true gain", "error of the plain gain", "error of the shrunken gain")
        results += [
            Estimate(design.name, f"{name}, shipped", float(mean), float(error))
            for name, mean, error in zip(names, columns.mean(axis=0), spread, strict=True)
        ]
    return results


def run(*, draws: int) -> list[Promise | Estimate]:
    """Simulate every design."""
    return [result for design in list_designs() for result in simulate_design(design, draws)]
