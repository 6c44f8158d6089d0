"""How often an exact null ships where nobody said which queries depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.studies.simulations import groups
from benchmarks.studies.simulations.groups import (
    QUERIES,
    draw_dataset,
    draw_differences,
    hold_out_best,
)
from benchmarks.studies.simulations.promise import Promise, Side
from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.data.ordering import FloatArray
from fusion_bench.io.dataset import Dataset
from fusion_bench.stats.intervals import estimate_mean
from fusion_bench.stats.values import Pair
from fusion_bench.tune.held_out import estimate_family
from fusion_bench.tune.trial_selection import decide_verdict

TITLE = "Groups that nobody declared"
DESCRIPTION = """\
This simulation has the queries, lists and parameter sets of the one before, and no groups are
declared. The best of the 20 ships if its flip test by group ships it, as in `tune`. Identical
queries have equal texts and equal lists. By default these are one group, if that leaves half as
many groups as queries. `ship` is withheld if a tenth of the queries or more are still linked to
others. Promised by default: at most 2.5 %, except if fewer than a tenth of the queries are linked
by less than identity. That is a warning."""

SEED = 27


@dataclass(frozen=True)
class Design(groups.Design):
    """Groups that nobody declared.

    Attributes:
        identical: Whether the queries of a group are identical, not only similar.
        limit: How often a null may ship by default; None = not promised.
    """

    identical: bool
    limit: float | None = 0.025


FIFTHS = QUERIES * 2 // 5
DESIGNS = (
    Design("all queries in fours, identical", QUERIES, 4, identical=True),
    Design("all queries in pairs, identical", QUERIES, 2, identical=True),
    Design("two fifths in fours, identical", FIFTHS, 4, identical=True),
    Design("two fifths in fours, similar", FIFTHS, 4, identical=False),
    Design("8 % in fours, similar", QUERIES * 2 // 25, 4, identical=False, limit=None),
)


def run(*, draws: int) -> list[Promise]:
    """How often the null ships by default, and without groups."""
    measured: list[Promise] = []
    for n, design in enumerate(DESIGNS):
        random = np.random.default_rng([SEED, n])
        shipped = withheld = alone = 0
        for draw in range(draws):
            if draw % groups.REPEATS == 0:
                dataset = draw_dataset(random, design.originals, identical=design.identical)
                found = find_near_duplicates(dataset)
                is_open = found is not None and found.withholds
            differences, seed = draw_differences(random, design.originals), f"{n} {draw}"
            withheld += is_open
            shipped += not is_open and _ships(differences, _group_names(dataset), seed)
            alone += _ships(differences, [*dataset.declared], seed)
        side: Side = "none" if design.limit is None else "at most"
        measured += [
            Promise(design.name, "ships by default", shipped, draws, design.limit, side),
            Promise(design.name, "ship is withheld", withheld, draws, None, "none"),
            Promise(design.name, "ships with groups: none", alone, draws, None, "none"),
        ]
    return measured


def _ships(differences: FloatArray, names: Sequence[str], seed: str) -> bool:
    """Whether the best parameter set of one half ships on the other."""
    values, codes = hold_out_best(differences, names, seed=seed)
    # Draws never ship what Student's interval does not: they are made where they decide.
    if estimate_mean(values, codes).low <= 0:
        return False
    groups = list(map(str, codes.tolist()))
    [gain] = estimate_family([Pair.from_arrays(values, keys=groups)])
    return decide_verdict(gain, min_gain=0) == "ship"


def _group_names(dataset: Dataset) -> list[str]:
    """(Q,): the group of each query, in the order in which they were drawn."""
    return [dataset.queries[query].group or query for query in dataset.declared]
