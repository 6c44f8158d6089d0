import math
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest

from fusion_bench.config.parameters import Parameter, Params, choice, integer, real
from fusion_bench.tune import parzen
from fusion_bench.tune.parzen import ParzenProposer

SPACE = (
    real("x", -1.0, 3.0),
    real("y", 0.01, 100.0, log=True),
    integer("k", 1, 9),
    choice("method", "a", "b", "c"),
    real("z", 0.0, 1.0).add_condition("method", "b"),
)


def quality(params: Params) -> float:
    """The greatest, 0, at x = 2, y = 1, k = 7 and method b with z = .25."""
    number = {path: float(value) for path, value in params.items() if not isinstance(value, str)}  # type: ignore[arg-type]
    losses = ((number["x"] - 2) / 4, math.log10(number["y"]) / 4, (number["k"] - 7) / 8)
    return -sum(loss**2 for loss in losses) - abs(number.get("z", 1.0) - 0.25)


def search(seed: int, batches: int) -> list[tuple[Params, float]]:
    proposer, trials = ParzenProposer(SPACE, seed), []
    for _ in range(batches):
        batch = proposer.ask(8)
        values = [quality(params) for params in batch]
        proposer.tell(values)
        trials += list(zip(batch, values, strict=True))
    return trials


def test_proposals_follow_the_better_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [max(value for _, value in search(seed, 12)) for seed in range(5)]
    monkeypatch.setattr(parzen, "STARTUP", 1000)  # uniform
    by_luck = [max(value for _, value in search(seed, 12)) for seed in range(5)]
    assert np.mean(found) > np.mean(by_luck) / 2, "half of the loss, or less"


def test_every_proposal_is_in_the_space() -> None:
    for params, _ in search(7, 12):
        active: list[Parameter] = [each for each in SPACE if each.is_active(params)]
        assert [each.path for each in active] == list(params)
        assert all(each.contains(params[each.path]) for each in active)


def test_failed_trials_are_left_out() -> None:
    proposers = [ParzenProposer(SPACE, 3) for _ in range(2)]
    trials = search(1, 2)
    proposers[0].add_trials(trials)
    proposers[1].add_trials([*trials[:5], (trials[0][0], math.nan), *trials[5:]])
    assert proposers[0].ask(4) == proposers[1].ask(4)


def test_density_is_that_of_a_plain_sum_of_kernels() -> None:
    centers = np.array([[0.2, 0.5], [0.9, 1.0], [math.nan, 0.0]])
    density = parzen._Density(centers, np.array([0.0, 3.0]))
    points = np.array([[0.1, 0.5], [0.7, 1.0], [math.nan, 0.0]])
    width = max(0.2 * 3 ** (-1 / 6), 1 / 4)
    for point, logarithm in zip(points, density.log_density(points), strict=True):
        kernels = [1.0]  # the uniform density
        for x, level in centers:
            normal = NormalDist(x, width)
            is_uniform = math.isnan(x) or math.isnan(point[0])
            share = 1.0 if is_uniform else normal.pdf(point[0]) / (normal.cdf(1) - normal.cdf(0))
            kernels.append(share * ((4 / 7) * 3 * (level == point[1]) + 3 / 7))
        # Of 4 kernels a choice stays with probability 1 / (1 + 3/4).
        assert math.exp(logarithm) == pytest.approx(sum(kernels) / 4)


def test_draws_have_the_density_that_is_computed() -> None:
    density = parzen._Density(np.array([[0.1], [0.95]]), np.array([0.0]))
    drawn = density.draw(np.random.default_rng(0), 40_000)[:, 0]
    shares, edges = np.histogram(drawn, 10, (0.0, 1.0), density=True)
    expected = [
        np.exp(density.log_density(np.linspace(a, b, 50)[:, None])).mean()
        for a, b in pairwise(edges)
    ]
    assert np.abs(shares - expected).max() < 0.06
