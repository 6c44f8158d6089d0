"""The table of docs/studies/judges.md on orders and verdicts, for one collection."""

import pytest

from benchmarks.studies.judge_sensitivity_table import evaluate_judges, list_rows
from benchmarks.studies.prediction_powered_table import PAGE
from tests.parity.data import parity_data

pytestmark = pytest.mark.parity


def test_the_page_shows_what_comes_out() -> None:
    parity_data("trec-dl-2019")
    rows = [*list_rows(evaluate_judges("trec-dl-2019"))]
    shown = PAGE.read_text(encoding="utf-8").splitlines()
    assert len(rows) > 1
    assert [row for row in rows if row not in shown] == []
