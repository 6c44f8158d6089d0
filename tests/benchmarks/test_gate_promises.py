"""The simulation of what one gate check promises: which samples count, and what is decided."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.studies.simulations.gate_promises import Counts, Design, simulate, summarize
from benchmarks.studies.simulations.inference_cells import Sample


def draw_losses(units: int, losing: int, loss: float) -> Callable[..., Sample]:
    """One sample in which so many units lose, by 1 to 2 times ``loss``; the others do not."""
    sums = np.zeros(units)
    sums[:losing] = -loss * np.linspace(1, 2, losing)
    truth = np.array([sums.mean()])
    return lambda *_: Sample(sums[None, None], np.ones((1, units)), truth)


@pytest.mark.parametrize(
    ("units", "losing", "counted"), [(60, 30, 1), (19, 19, 0), (60, 9, 0), (300, 20, 0)]
)
def test_samples_count_with_enough_units_changes_and_losses(
    units: int, losing: int, counted: int
) -> None:
    """20 units, of which 10 changed and a tenth lost."""
    counts = simulate(Design("made", draw_losses(units, losing, 0.2), 0.0), units, 3)
    assert counts.lost[counted] == 3
    assert counts.lost.sum() == counts.same.sum() == 3


def test_a_loss_of_exactly_max_drop_does_not_pass_at_its_own_mean() -> None:
    """The sample's mean is −max_drop, so its lower end lies below; without the loss it is 0."""
    counts = simulate(Design("made", draw_losses(60, 30, 0.2), 0.0), 60, 2)
    assert counts.passed.tolist() == [0, 0]
    assert counts.regressed.tolist() == [0, 0]


def test_a_row_of_the_page_names_the_worst_design_of_those_with_enough_samples() -> None:
    """Rare designs are in the CSV only."""
    many = Counts(*(np.array([0.0, n]) for n in (200, 2, 200, 8)))
    few = Counts(*(np.array([0.0, n]) for n in (9, 9, 9, 9)))
    row = summarize(20, [("many", many), ("few", few)])
    assert row[:2] == ("20", "1.0 [0.1, 3.6]")
    assert row[4].endswith("(many)")
