"""The table of repeated trials: its draws, its words, and the published figures of the agents."""

import numpy as np
import pytest

from benchmarks.studies.repeat_values import (
    FIXED,
    KINDS,
    TRIALS,
    Contrast,
    load_agents,
    make_contrasts,
)
from benchmarks.studies.repeats_table import (
    BORROWED,
    WAYS,
    Coverage,
    count_alarms,
    describe_agents,
    describe_coverage,
    format_agents,
    format_coverage,
    simulate,
)
from fusion_bench.data.ordering import FloatArray
from fusion_bench.stats.repeat_variance import measure_repeat_spread
from tests.parity.data import parity_data
from tests.stats.trial_cases import crossed

#: Mean and standard deviation over trials, as published, in hundredths.
PUBLISHED = {
    ("biology", "effort-medium"): ("43.0", "1.7"),
    ("biology", "effort-high"): ("50.6", "0.5"),
    ("biology", "effort-ultrahigh"): ("57.5", "0.7"),
}


def agents() -> dict[str, dict[str, FloatArray]]:
    """Made ones: four systems of three trials, the fixed search without any spread."""
    names = (FIXED, "effort-medium", "effort-high", "effort-ultrahigh")
    values = {name: crossed(TRIALS, 30, trial_sd=0.1, seed=i) for i, name in enumerate(names)}
    values[FIXED] = np.repeat(values[FIXED][:1], TRIALS, axis=0)
    return {"biology": values}


def test_a_draw_moves_every_query_of_a_trial_alike() -> None:
    values = agents()["biology"]
    steady = np.repeat(values["effort-high"][:1], TRIALS, axis=0)
    first, second = Contrast("c", steady, values[FIXED][:1]).draw(np.random.default_rng(1), 0.5)
    assert first.shape == (TRIALS, 30)
    assert np.ptp(first - first[0], axis=1) == pytest.approx(0)
    assert np.ptp(first.mean(axis=1)) > 0.1
    assert second.shape == (1, 30)
    assert set(second[0]) <= set(values[FIXED][0])


def test_contrasts_are_all_pairs_of_agents_and_each_against_the_fixed_search() -> None:
    contrasts = make_contrasts(agents())
    kinds = [kind for kind in KINDS for _ in range(3)]
    assert [each.kind for each in contrasts] == kinds
    first, second = contrasts[-1].draw(np.random.default_rng(1), 0.5)
    assert (len(first), len(second)) == (TRIALS, 1)


def test_each_way_is_counted_and_described() -> None:
    contrasts = make_contrasts(agents())
    chosen = (contrasts[0], contrasts[3], contrasts[6])
    rows = [row for c in chosen for row in simulate(c, 0.05, 40, seed=1)]
    assert [row.way for row in rows] == [*WAYS, *WAYS, *WAYS, BORROWED]
    shares = {row.way: row.share for row in rows[:4]}
    assert shares["trials counted as queries"] < shares["crossed model"]
    assert len(format_coverage(rows).splitlines()) == 2 + len(rows)
    rows += [Coverage("c", KINDS[0], 0.0, WAYS[1], 95, 100, 0.1)]
    assert "already right" in describe_coverage(rows)
    assert "(1 of 1 designs)" in describe_coverage(rows)


def test_coverage_holds_within_its_monte_carlo_error() -> None:
    hits = {9_000: False, 9_280: True, 9_500: True, 9_720: True, 9_900: False}
    for count, holds in hits.items():
        assert Coverage("c", KINDS[0], 0.0, WAYS[3], count, 10_000, 0.1).holds is holds


def test_the_real_agents_have_their_published_figures() -> None:
    parity_data("weaviate-agents")
    real = load_agents()
    for (collection, system), (mean, sd) in PUBLISHED.items():
        values = real[collection][system]
        spread = measure_repeat_spread(values)
        assert (f"{100 * values.mean():.1f}", f"{100 * spread.sd:.1f}") == (mean, sd)
    assert "| 0.4304 ± 0.0166 | 45 of 103 |" in format_agents(real)
    alarms, pairs = count_alarms(real)
    assert pairs == 27
    assert alarms <= 4
    assert f", {alarms} alarm" in describe_agents(real)
