"""What the golden page of a tuning run's findings does not show."""

from fusion_bench.report.tuning_page import tuning_findings
from fusion_bench.report.tuning_records import Look
from fusion_bench.report.tuning_texts import advise_next_look, format_level
from tests.report.tuning_cases import front, front_with_points, record
from tests.report.tuning_finding_cases import CROSS_FITTED, LOOK, chosen


def test_what_a_run_chose_and_its_verdict_first() -> None:
    result = tuning_findings(record(interrupted=True))
    assert result[0].key == "verdict"
    assert [finding.tone for finding in result].index("warning") == len(result) - 1
    assert "warning" not in {finding.tone for finding in tuning_findings(record())}
    assert record(**chosen(trial=0)).is_default_chosen
    assert not record().is_default_chosen
    assert record(split_choice=CROSS_FITTED).is_cross_fitted


def test_the_advice_to_judge_more_names_the_level_of_the_next_look() -> None:
    advice = advise_next_look(LOOK)
    assert "look 2" in advice
    assert ".0025" in advice
    assert advise_next_look(Look(number=3, level=0.024, power=0.79, max_queries=400)) == ""
    levels = [format_level(level) for level in (0.025, 0.0025, 0.00015625)]
    assert levels == [".025", ".0025", ".00016"]


def test_the_best_point_and_the_cheapest_that_is_nearly_as_good() -> None:
    whole = front()
    assert whole.best.depth == 60
    assert whole.cheapest_reaching(whole.best.value - 0.005).depth == 10
    assert whole.cheapest_reaching(whole.best.value - 0.001).depth == 60
    same = front_with_points({10: {"value": 0.56}})
    assert same.best.depth == 10, "of equally good ones the cheaper"
