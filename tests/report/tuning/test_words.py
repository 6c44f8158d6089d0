"""What is said of a tuning run: the verdict in words, and never more than was shown."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.report.tuning.findings import tuning_findings
from fusion_bench.report.tuning.tuning_records import (
    Choice,
    Difference,
    FrontPoint,
    ParameterInfo,
    Plateau,
    TuningReport,
)
from tests.report.tuning.cases import by_type_too, front, gain, record, thresholds, typed

#: No gain that anybody saw.
DOWN = gain(-0.01, -0.03, 0.01)


def said(tuning: TuningReport, kind: str = "finding") -> str:
    return "\n".join(
        s.text for s in tuning_findings(tuning) if (s.tone == "warning") == (kind == "warning")
    )


def verdict_of(**changed: Any) -> str:  # noqa: ANN401
    return tuning_findings(record(**changed))[0].text


def test_ship_names_the_held_out_gain() -> None:
    assert verdict_of() == (
        "Ship: the tuned system is better on 100 held-out queries: nDCG@10 +0.0300 "
        "[+0.0100, +0.0500], p .012."
    )


def test_a_small_sure_gain_ships_with_its_size() -> None:
    text = verdict_of(held_out=gain(0.003, 0.001, 0.005))
    assert text.startswith("Ship: ")
    assert "smaller than the least gain asked for, 0.0050" in text


@pytest.mark.parametrize(
    ("verdict", "held_out", "needed", "expected"),
    [
        ("worse", gain(-0.03, -0.05, -0.01), 5, "Worse: keep the default."),
        ("keep", gain(0.0, -0.002, 0.002), 5, "Keep the default: any gain is below the 0.0050"),
        ("keep", gain(0.0, 0.0, 0.0, wins=0, losses=0, ties=100), None, "makes no difference"),
        ("too few queries", gain(0.01, -0.01, 0.03), 12_544, "12,544 held-out queries would be"),
        ("too few queries", gain(0.01, -0.01, 0.03), 90, "90 would show a gain of 0.0050"),
        ("too few queries", gain(0.01, None, None), None, "Nothing here tells how many"),
    ],
)
def test_every_other_verdict_keeps_the_default(
    verdict: str, held_out: object, needed: int | None, expected: str
) -> None:
    text = verdict_of(verdict=verdict, held_out=held_out, needed=needed)
    assert expected in text
    assert "eep the default" in text
    assert not text.startswith("Ship")


@pytest.mark.parametrize(
    ("tune", "held_out", "expected"),
    [
        (0.04, 0.03, "25.0 % of the gain did not carry over"),
        (0.04, -0.01, "The whole gain was fitted to the tuning queries"),
        (0.04, 0.05, "the held-out queries gained as much"),
        (0.0, 0.0, "found nothing better than the default on the tuning queries either"),
    ],
)
def test_shrinkage_in_words(tune: float, held_out: float, expected: str) -> None:
    whole = record(tune=gain(tune, -1, 1), held_out=gain(held_out, -1, 1))
    assert expected in said(whole)


def test_nested_cross_validation_is_called_an_estimate() -> None:
    assert "estimates the gain of this procedure at +0.0350" in said(record())
    assert "it paid on 2 of 3 folds" in said(record())
    assert "cross-validation" not in said(record(nested=None, folds=()))


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, "the exact numbers hardly matter"), (0.001, "a narrow peak"), (0.1, "10.0 % of 100")],
)
def test_the_plateau_in_words(share: float, expected: str) -> None:
    assert expected in said(record(plateau=Plateau(share=share, sample=100)))
    assert "Plateau" not in said(record(plateau=None))


def test_the_one_standard_error_rule_names_what_it_passed_over() -> None:
    choice = record().choice
    kept = Choice(**{**choice.model_dump(), "rule": "one_standard_error", "trial": 3})
    assert "one-standard-error rule: trial 3, the nearest to the default" in said(
        record(choice=kept)
    )


@pytest.mark.parametrize(
    ("trial", "expected"),
    [(3, "Chosen: trial 3, whose gain"), (0, "The default was chosen: after shrinkage")],
)
def test_shrinkage_names_the_highest_mean(trial: int, expected: str) -> None:
    choice = record().choice
    changed = Choice(**{**choice.model_dump(), "rule": "shrinkage", "trial": trial})
    text = said(record(choice=changed))
    assert expected in text
    assert f"highest mean is that of trial {choice.trial}" in text


def test_what_speaks_against_the_numbers_is_a_warning() -> None:
    choice = record().choice
    edge = Choice(**{**choice.model_dump(), "params": {"fusion.k": 1, "blend.beta": 1.0}})
    whole = record(choice=edge, interrupted=True, judged_only=-0.02, by_type=typed())
    warnings = said(whole, "warning")
    assert "interrupted after 40 trials" in warnings
    assert "over judged documents only" in warnings.lower()
    assert "Chosen at the end of its range: fusion.k 1." in warnings, "a share of 1 is natural"
    assert "loses on queries without a type: -0.0400" in warnings
    assert said(record(), "warning") == ""


@pytest.mark.parametrize(
    ("params", "warned"),
    [
        ({"fusion.weights.dense": 0}, False),
        ({"fusion.weights.dense": 1.99}, True),
        ({"fusion.weights.dense": 0.01}, True),
        ({"fusion.k": 2}, False),
        ({"fusion.k": 999}, True),
        ({"blend.method": "none"}, False),
    ],
)
def test_which_choices_are_at_an_end(params: dict[str, object], warned: bool) -> None:
    choice = Choice(**{**record().choice.model_dump(), "params": params})
    assert ("end of its range" in said(record(choice=choice), "warning")) == warned


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("ship", "is better than one set of numbers for all (held out: +0.0010"),
        ("worse", "is worse than one set of numbers for all: keep that"),
        ("keep", "gains nothing worth having over one set of numbers for all: keep that"),
        ("too few queries", "is not shown to beat one set of numbers for all"),
    ],
)
def test_types_against_one_set_of_numbers(verdict: str, expected: str) -> None:
    assert f"Tuning by query type {expected}" in said(record(typed=by_type_too(verdict)))


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ("ship", "are better than"),
        ("worse", "are worse than"),
        ("keep", "gain nothing worth having over"),
        ("too few queries", "are not shown to beat"),
    ],
)
def test_thresholds_in_words(verdict: str, expected: str) -> None:
    text = said(record(thresholds=thresholds(verdict)))
    assert f"Thresholds 0.5 / 0.2 {expected} 0.7 / 0.3" in text
    assert "utility 0.8000 against 0.7000 held out" in text
    assert "min_score is best at 0.4" in text


def test_a_weight_at_1_is_at_no_end_where_only_the_ratio_counts() -> None:
    def warned(value: float, *, ratio: bool) -> bool:
        weight = ParameterInfo(path="w", kind="float", low=0.1, high=1, ratio=ratio)
        choice = Choice(**{**record().choice.model_dump(), "params": {"w": value}})
        return "end of its range" in said(record(choice=choice, parameters=(weight,)), "warning")

    assert [warned(1.0, ratio=ratio) for ratio in (True, False)] == [False, True]
    assert warned(0.1, ratio=True)


def advised(**changed: Any) -> str:  # noqa: ANN401
    found = [
        s.text for s in tuning_findings(record(**changed)) if s.text.startswith("What to do now: ")
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "put the tuned numbers to use"),
        ({"judged_only": -0.02}, "keep the default, and judge the documents that the tuned"),
        ({"verdict": "worse"}, "these numbers were fitted to the tuning queries"),
        ({"verdict": "keep"}, "look for more elsewhere"),
        ({"verdict": "too few queries", "needed": 12_544}, "12,544 held out would tell"),
        ({"verdict": "too few queries", "needed": 90}, "unless the change costs nothing"),
        (
            {"verdict": "too few queries", "held_out": DOWN, "nested": DOWN, "needed": 1_388},
            "nothing was found so far",
        ),
    ],
)
def test_one_thing_to_do(changed: dict[str, Any], expected: str) -> None:
    assert expected in advised(**changed)


def test_no_number_of_queries_is_named_where_nothing_was_found() -> None:
    lost = {"verdict": "too few queries", "held_out": DOWN, "needed": 1_388}
    text = verdict_of(**lost, nested=DOWN)
    assert "Nothing was found so far: the gain is not above 0 held out and in cross" in text
    assert "1,388" not in text
    assert "1,388" in verdict_of(**lost), "cross-validation found a gain"
    assert "above 0 held out." in verdict_of(**lost, nested=None)


def test_a_depth_that_is_worth_more_than_the_numbers_is_the_lever() -> None:
    found = front()
    *rest, chosen = found.points
    deep = chosen.model_copy(
        update={
            "roles": (),
            "depth": 100,
            "value": 0.7,
            "held_out": 0.7151,
            "over_default": Difference(mean=0.1, low=0.05, high=0.15),
        }
    )
    own = chosen.model_copy(update={"efficient": False})

    def told(point: FrontPoint) -> str:
        return said(record(front=found.model_copy(update={"points": (*rest, own, point)})))

    text = told(deep)
    assert "The biggest lever here is the rerank depth, and not what was tuned: depth 100" in text
    assert "take the tuned numbers, and try depth 100" in text
    assert "reaches 0.7151 held out, the default (depth 50) 0.5200 (+0.1000 [" in text
    unsure = Difference(mean=0.1, low=-0.05, high=0.15)
    small = Difference(mean=0.034, low=0.03, high=0.04)  # the numbers gain 0.03, the least is 0.005
    for doubtful in (unsure, small):
        assert "biggest lever" not in told(deep.model_copy(update={"over_default": doubtful}))
    assert "biggest lever" not in said(record(front=found)), "the best of the front was chosen"
    assert "biggest lever here is the reranker" in told(deep.model_copy(update={"reranker": "x"}))
