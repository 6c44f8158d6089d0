"""The mutants of the gate: each changes a line that is there."""

import pytest

from benchmarks.studies.mutants import MUTANTS, ROOT, Mutant, try_mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.title)
def test_the_line_to_change_stands_there_once(mutant: Mutant) -> None:
    text = (ROOT / "fusion_bench" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old


def test_a_line_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"gate/verdict.py .*such line"):
        try_mutant(Mutant("gone", "gate/verdict.py", "no such line", ""), runs=1)
