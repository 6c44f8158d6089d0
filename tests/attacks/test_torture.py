"""A few rounds of every loop of ``make torture``."""

from pathlib import Path

import pytest

from tests.attacks.torture import Loop, Tally, list_loops, run_loops
from tests.texts import names_in_order


@pytest.mark.parametrize(
    "loop", [loop for loop in list_loops() if loop.test_rounds], ids=lambda loop: loop.name
)
def test_rounds_are_survived(loop: Loop, tmp_path: Path) -> None:
    for seed in range(loop.test_rounds):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert loop.run_round(seed, folder) != Tally()


def test_a_round_that_fails_is_counted_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    def fail_at_first(seed: int, folder: Path) -> Tally:
        assert folder.is_dir()
        assert seed != 7, "planted"
        return Tally(inputs=1)

    tally, failures = run_loops([Loop("planted", fail_at_first)], 0.2, first_seed=7)
    assert failures == 1
    assert tally.inputs > 0
    assert "FAILED planted, seed 7:" in capsys.readouterr().out


def test_the_line_names_what_was_survived() -> None:
    tally = Tally(kills=1, inputs=2000) + Tally(faults=3)
    assert names_in_order(str(tally), "1 kills", "2,000 inputs", "3 faults")
