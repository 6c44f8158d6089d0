"""Which findings and warnings a tuning run gets: keys, tones and numbers."""

from __future__ import annotations

from typing import Any

import pytest

from fusion_bench.checks.records import DataWarning, NearDuplicates, NeededQueries
from fusion_bench.checks.unjudged import UnjudgedResult
from fusion_bench.report.page import Finding
from fusion_bench.report.tuning_page import tuning_findings
from fusion_bench.report.tuning_records import (
    DataFacts,
    FloorRow,
    Gain,
    PairedDifference,
    ParameterInfo,
    ParetoPoint,
    Plateau,
    SplitChoice,
    TuningReport,
)
from tests.report.cases import run
from tests.report.tuning.cases import (
    by_type_too,
    floor_row,
    front,
    gain,
    needed,
    record,
    thresholds,
    typed,
)

#: No gain on held-out queries.
DOWN = gain(-0.01, -0.03, 0.01)


def findings(report: TuningReport) -> dict[str, Finding]:
    return {finding.key: finding for finding in tuning_findings(report)}


def text_of(key: str, **changed: Any) -> str:  # noqa: ANN401
    return findings(record(**changed))[key].text


def test_the_verdict_comes_first_and_warnings_last() -> None:
    result = tuning_findings(record(interrupted=True))
    assert [finding.key for finding in result[:2]] == ["verdict", "recommendation"]
    assert [finding.tone for finding in result].index("warning") == len(result) - 1
    assert "warning" not in {finding.tone for finding in tuning_findings(record())}


def test_ship_names_the_held_out_gain() -> None:
    verdict = findings(record())["verdict"]
    assert verdict.tone == "better"
    assert verdict.text.startswith("Verdict: ship. ")
    assert "nDCG@10 0.5000 → 0.5300, +6.0 %: 30 queries better, 20 worse of 100" in verdict.text
    assert "(+0.0300 [+0.0100, +0.0500], p .012)" in verdict.text
    assert "The least gain is 0.0050." in verdict.text


@pytest.mark.parametrize(
    ("verdict", "held_out", "size", "number"),
    [
        ("worse", gain(-0.03, -0.05, -0.01), needed(5), "-0.0300"),
        ("keep", gain(0.0, -0.002, 0.002), needed(5), "+0.0020"),
        ("too few queries", gain(0.01, -0.01, 0.03), needed(12_000), "12,000 [6,000, 24,000]"),
        ("too few queries", gain(0.01, None, None), None, "unknown"),
    ],
)
def test_every_other_verdict_keeps_the_default(
    verdict: str, held_out: Gain, size: NeededQueries | None, number: str
) -> None:
    result = findings(record(verdict=verdict, held_out=held_out, needed=size))
    assert f"Verdict: {verdict}." in result["verdict"].text
    assert number in result["verdict"].text
    assert "keep the default" in result["recommendation"].text


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (floor_row("equivalent", difference=-0.001), "bm25 is equivalent within 0.0050 to"),
        (floor_row("better", difference=0.02), "bm25 is better than"),
        (floor_row("better, by less than min_gain", difference=0.002), "by less than 0.0050"),
        (floor_row("identical", difference=0.0), "bm25 has the same values as"),
        (floor_row("not shown", difference=0.001), "bm25 has no lower mean than"),
        (floor_row("equivalent", kind="system", difference=0.0), "bm25, not tuned, is equiv"),
    ],
)
def test_what_does_as_well_without_tuning_comes_before_ship(row: FloorRow, expected: str) -> None:
    report = record(floor=(floor_row(name="other"), row))
    result = findings(report)
    verdict = result["verdict"]
    assert expected in verdict.text
    before, ship = verdict.text.split(" So keep the default, or use bm25. ")
    assert expected in before
    assert ship.startswith("Verdict against the default alone: ship. The tuned system is better")
    assert verdict.tone == "warning"
    assert "keep the default, or use bm25" in result["recommendation"].text
    kept = findings(record(floor=(row,), verdict="keep"))
    assert expected in kept["floor"].text
    assert kept["verdict"].text.startswith("Verdict: keep.")


@pytest.mark.parametrize("row", [floor_row("worse"), floor_row("not shown", difference=-0.001)])
def test_what_is_below_the_tuned_system_is_no_floor(row: FloorRow) -> None:
    result = findings(record(floor=(row,)))
    assert result["verdict"].text.startswith("Verdict: ship.")
    assert "Shrunken estimate of the gain: +0.0200." in result["verdict"].text
    assert "floor" not in result


def test_too_few_tuning_queries_names_the_trials_that_looked_better() -> None:
    choice = record().choice.model_copy(update={"trial": 0})
    report = record(choice=choice, verdict="too few tuning queries", shrunken=None)
    text = findings(report)["verdict"].text
    assert text.startswith(f"Verdict: too few tuning queries. {report.better_trials} of 40 trials")
    assert "on the 100 tuning queries" in text


@pytest.mark.parametrize(
    ("tune", "held_out", "expected"),
    [
        (0.04, 0.03, "held out +0.0300 (75.0 % of it)"),
        (0.04, -0.01, "held out -0.0100. The first"),
        (0.0, 0.0, "no higher mean"),
    ],
)
def test_optimism(tune: float, held_out: float, expected: str) -> None:
    changed = {"tune": gain(tune, -1, 1), "held_out": gain(held_out, -1, 1)}
    assert expected in text_of("optimism", **changed)


def test_nested_cross_validation_is_an_estimate() -> None:
    text = text_of("nested cross-validation")
    assert "estimates a gain of +0.0350" in text
    assert "2 of 3 folds" in text
    assert "nested cross-validation" not in findings(record(nested=None, folds=()))


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, "tuning queries."), (0.001, "held-out queries.")],
)
def test_plateau(share: float, expected: str) -> None:
    text = text_of("plateau", plateau=Plateau(share=share, sample=100))
    assert f"{100 * share:.1f} % of 100 random parameter sets are within one standard error" in text
    assert text.endswith(expected)
    assert "plateau" not in findings(record(plateau=None))


CROSS_FITTED = SplitChoice(asked="all", design="all", queries=100)


def test_a_narrow_peak_under_cross_fitting_names_no_held_out_queries() -> None:
    assert record(split_choice=CROSS_FITTED).is_cross_fitted
    changed = {"split_choice": CROSS_FITTED, "plateau": Plateau(share=0.0, sample=100)}
    assert text_of("plateau", **changed).endswith("on the tuning queries.")


@pytest.mark.parametrize(("trials", "is_few"), [(2, True), (3, True), (4, False)])
def test_few_trials_of_lists_need_more(trials: int, is_few: bool) -> None:
    text = text_of("list trials", list_trials=trials)
    assert ("6 trials of the lists are needed." in text) == is_few


@pytest.mark.parametrize(
    ("rule", "trial", "expected"),
    [
        (
            "one_standard_error",
            3,
            "Trial 3 was chosen as the nearest to the default within one standard",
        ),
        (
            "shrinkage",
            3,
            "Trial 3 was chosen as the greatest gain over the default after shrinkage",
        ),
        ("shrinkage", 0, "Trial 0 (the default) was chosen"),
    ],
)
def test_a_rule_that_passed_over_the_highest_mean(rule: str, trial: int, expected: str) -> None:
    choice = record().choice
    changed = choice.model_copy(update={"rule": rule, "trial": trial})
    text = text_of("selection rule", choice=changed)
    assert text.startswith(expected)
    assert f"highest mean is that of trial {choice.trial}" in text
    same = choice.model_copy(update={"rule": "shrinkage"})
    assert "selection rule" not in findings(record(choice=same))


UNJUDGED = UnjudgedResult(
    candidate_share=0.4, baseline_share=0.1, judged_only=-0.02, low=-0.03, high=-0.01, filled=-0.04
)


def test_what_unjudged_documents_could_change_stands_beside_every_verdict() -> None:
    shown = findings(record(unjudged=UNJUDGED))["unjudged"]
    assert shown.tone == "plain"
    assert "40.0 % (baseline 10.0 %)" in shown.text
    assert "-0.0400" in shown.text
    none = UNJUDGED.model_copy(update={"candidate_share": 0.0, "baseline_share": 0.0})
    assert "unjudged" not in findings(record(unjudged=none))
    assert "unjudged" not in findings(record())


def test_warnings() -> None:
    params = {"fusion.k": 1, "blend.beta": 1.0}
    edge = record().choice.model_copy(update={"params": params})
    report = record(
        choice=edge,
        interrupted=True,
        verdict="unjudged decide",
        unjudged=UNJUDGED,
        by_type=typed(),
    )
    result = findings(report)
    warnings = {key: f.text for key, f in result.items() if f.tone == "warning"}
    assert list(warnings) == ["verdict", "unjudged", "interrupted", "range end", "losing type"]
    assert "40 trials" in warnings["interrupted"]
    assert "-0.0200" in warnings["unjudged"]
    assert "fusion.k 1." in warnings["range end"], "a share of 1 is a natural end"
    assert "queries without a type: -0.0400" in warnings["losing type"]


def test_tune_warns_of_the_data_as_eval_does() -> None:
    facts = DataFacts(
        runs=(run(zero_scores=3),),
        warnings=(DataWarning(key="zero scores", text="bm25 has rows with score 0."),),
        judgments="pooled",
        queries=100,
        unjudged_shares={"the default": 0.1, "the tuned system": 0.4},
        tied={"the default": 0, "the tuned system": 6},
        source_tied={"the default": 50, "the tuned system": 5},
    )
    keys = ("zero scores", "unjudged share", "ties", "source ties")
    result = findings(record(data=facts))
    assert all(result[key].tone == "warning" for key in keys)
    assert "for the tuned system (at most 40.0 %)" in result["unjudged share"].text
    assert "for the tuned system (at most 6 of 100)" in result["ties"].text
    assert "for the default (at most 50 of 100)" in result["source ties"].text
    complete = facts.model_copy(update={"judgments": "complete"})
    assert "unjudged share" not in findings(record(data=complete))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"fusion.weights.dense": 0}, False),
        ({"fusion.weights.dense": 1.99}, True),
        ({"fusion.weights.dense": 0.01}, True),
        ({"fusion.k": 2}, False),
        ({"fusion.k": 999}, True),
        ({"blend.method": "none"}, False),
    ],
)
def test_which_choices_are_at_the_end_of_their_range(
    params: dict[str, object], expected: bool
) -> None:
    choice = record().choice.model_copy(update={"params": params})
    assert ("range end" in findings(record(choice=choice))) is expected


@pytest.mark.parametrize(
    ("high", "value", "expected"), [(1.0, 1.0, False), (2.0, 1.0, False), (1.5, 0.02, True)]
)
def test_where_only_the_ratio_counts_only_the_low_end_is_an_end(
    high: float, value: float, expected: bool
) -> None:
    weight = ParameterInfo(path="w", kind="float", low=0.01, high=high, default=1.0, ratio=True)
    choice = record().choice.model_copy(update={"params": {"w": value}})
    report = record(parameters=(weight,), choice=choice)
    assert ("range end" in findings(report)) is expected


@pytest.mark.parametrize(
    ("verdict", "tone"),
    [("ship", "better"), ("worse", "worse"), ("keep", "plain"), ("too few queries", "plain")],
)
def test_types_and_thresholds_have_verdicts_of_their_own(verdict: str, tone: str) -> None:
    result = findings(record(per_type=by_type_too(verdict), thresholds=(thresholds(verdict),)))
    assert result["per query type"].tone == result["thresholds"].tone == tone
    assert "held out: +0.0010" in result["per query type"].text
    assert "thresholds 0.5 / 0.2" in result["thresholds"].text
    assert "utility 0.8000 against 0.7000" in result["thresholds"].text
    assert "interval" not in result["thresholds"].text
    assert "Unjudged documents count as not relevant" in result["thresholds"].text


def test_a_search_that_chose_the_default_claims_no_tested_gain() -> None:
    nothing = gain(0.0, 0.0, 0.0, wins=0, losses=0)
    choice = record().choice.model_copy(update={"trial": 0})
    same = {"choice": choice, "tune": nothing, "held_out": nothing, "nested": nothing}
    report = record(verdict="keep", **same)
    assert report.is_default_chosen
    assert not record().is_default_chosen
    result = findings(report)
    assert "optimism" not in result
    assert result["verdict"].text.startswith("Verdict: keep. The search (40 trials) chose the def")
    assert "gains too little" not in result["verdict"].text
    assert "no gain worth" not in result["recommendation"].text
    assert "0 of" not in result["nested cross-validation"].text


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "tuned.yaml"),
        ({"verdict": "worse"}, "fit the tuning queries only"),
        ({"verdict": "keep"}, "no gain worth a change"),
        ({"verdict": "too few queries"}, "judge more queries"),
        ({"verdict": "too few queries", "needed": needed(50)}, "unless the change costs nothing"),
        ({"verdict": "too few queries", "held_out": DOWN, "nested": DOWN}, "no gain was measured"),
        ({"verdict": "unjudged decide", "unjudged": UNJUDGED}, "Judge these first: "),
        ({"verdict": "too few tuning queries"}, "more queries to tune on"),
    ],
)
def test_the_recommendation_follows_the_verdict(changed: dict[str, Any], expected: str) -> None:
    text = text_of("recommendation", **changed)
    assert expected in text
    assert ("keep the default" in text) == (expected != "tuned.yaml")


def front_with(difference: PairedDifference, depth: int = 60, **changed: object) -> dict[str, Any]:
    """The default at depth 50 is chosen; the best of the front is at another depth."""

    def update(point: ParetoPoint) -> ParetoPoint:
        if point.depth == 50:
            return point.model_copy(update={"roles": ("default", "chosen")})
        if point.depth == depth:
            return point.model_copy(
                update={"roles": (), "value": 0.9, "over_default": difference, **changed}
            )
        return point

    points = tuple(update(point) for point in front().points)
    return {"front": front(points=points), "held_out": gain(0.01, 0.0, 0.02)}


LARGE = PairedDifference(mean=0.05, low=0.03, high=0.07)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (LARGE, True),
        (PairedDifference(mean=0.05, low=-0.01, high=0.11), False),  # not shown
        (PairedDifference(mean=0.014, low=0.01, high=0.02), False),  # not enough more
        (PairedDifference(mean=0.05, low=None, high=None), False),
    ],
)
def test_an_effort_that_gains_more_than_the_parameters(
    difference: PairedDifference, expected: bool
) -> None:
    result = findings(record(verdict="keep", **front_with(difference)))
    assert ("better effort" in result) is expected
    assert ("try depth 60" in result["recommendation"].text) is expected


def test_another_reranker_is_named_as_such() -> None:
    result = findings(record(verdict="ship", **front_with(LARGE, reranker="other")))
    assert "The reranker gains more" in result["better effort"].text
    assert "use the tuned parameters, and try" in result["recommendation"].text
    assert "better effort" not in findings(record())


def test_unjudged_documents_may_contradict_the_better_depth() -> None:
    contradicted = front_with(LARGE, reranker="other")
    whole = contradicted["front"].model_copy(update={"unjudged": UNJUDGED, "is_contradicted": True})
    result = findings(record(verdict="ship", **{**contradicted, "front": whole}))
    assert "Unjudged documents decide whether the reranker gains more" in (
        result["better effort"].text
    )
    assert "and try" not in result["recommendation"].text


def test_near_duplicate_queries_are_a_warning() -> None:
    duplicates = NearDuplicates(
        dataset="c",
        queries=9,
        linked=4,
        groups=1,
        largest=4,
        links={"same text": 3},
        is_too_large=True,
    )
    assert "44.4 %" in findings(record(near_duplicates=duplicates))["near-duplicate queries"].text
