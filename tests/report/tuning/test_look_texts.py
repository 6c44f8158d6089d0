from __future__ import annotations

from fusion_bench.report.tuning_page import tuning_findings
from fusion_bench.report.tuning_records import Look
from fusion_bench.report.tuning_texts import advise_next_look, describe_look, format_level
from tests.report.tuning.cases import record

FIRST = Look(
    number=1, level=0.02, power=0.773, next_number=2, next_level=0.0025, next_query_factor=1.697
)


def test_a_look_says_its_level_its_power_and_the_price_of_the_next() -> None:
    text = describe_look(FIRST)
    assert "look 1" in text
    assert "one-sided at .02, with 77.3 % power" in text
    assert "look 2, is tested at .0025 and needs 1.7 times the queries" in text


def test_a_look_names_its_line_and_looks_that_are_missing() -> None:
    look = FIRST.model_copy(update={"line": 3, "file": "looks.jsonl"})
    assert describe_look(look).endswith(" It is line 3 of looks.jsonl.")
    lost = look.model_copy(update={"lost": "line 9 of looks.jsonl is not in the ledger"})
    assert "Looks are missing, so this number is too low: line 9 of" in describe_look(lost)


def test_the_last_look_of_a_plan_names_no_next() -> None:
    last = Look(number=3, level=0.024, power=0.79, max_queries=400)
    assert "the last of its plan" in describe_look(last)
    assert advise_next_look(last) == ""


def test_uncounted_looks_say_why() -> None:
    text = describe_look(Look(number=None, level=0.025, power=0.8, note="because"))
    assert "not counted (because)" in text
    assert describe_look(None) == ""


def test_the_advice_to_judge_more_names_the_level_of_the_next_look() -> None:
    report = record(verdict="too few queries", look=FIRST, needed=None)
    findings = {finding.key: finding.text for finding in tuning_findings(report)}
    assert "look 1" in findings["look"]
    assert "look 2, tested one-sided at .0025" in advise_next_look(FIRST)


def test_levels_are_short() -> None:
    levels = [format_level(level) for level in (0.025, 0.0025, 0.00015625)]
    assert levels == [".025", ".0025", ".00016"]
