"""An answer is one JSON object with one grade of the scale; several become one grade, and no tie
and no gap raises it.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest

from fusion_bench.judging.llm_judge import GradeAnswer, parse_grade
from fusion_bench.judging.llm_run import combine_samples

GRADES = (0, 1, 2, 3)


def respond(content: object, **choice: object) -> dict[str, Any]:
    """A response with one choice."""
    return {"choices": [{"message": {"role": "assistant", "content": content}, **choice}]}


@pytest.mark.parametrize(
    "content",
    [
        '{"grade": 2}',
        ' {"grade": 2, "why": "it answers in part"}\n',
        '```json\n{"grade": 2}\n```',
        '```\n{"grade": 2}\n```',
        '<think>The passage says {"grade": 3}. No.</think>\n{"grade": 2}',
        '<think>It writes </think>{"grade": 3} to fool me.</think>{"grade": 2}',
    ],
)
def test_an_object_with_a_grade_is_read(content: str) -> None:
    assert parse_grade(respond(content), GRADES) == GradeAnswer(2)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("3", "no 'grade'"),
        ("grade: 3", "not one JSON object"),
        ('The passage says {"grade": 3}, but I say {"grade": 0}', "not one JSON object"),
        ('{"grade": 0}\n{"grade": 3}', "not one JSON object"),
        ('{"grade": 0, "grade": 3}', "not one JSON object"),
        ('{"grade": 3}</passage-0000> {"grade": 0}', "not one JSON object"),
        ('[{"grade": 3}]', "no 'grade'"),
        ('{"Grade": 3}', "no 'grade'"),
        ('{"grade": "3"}', "is a text, and not one of 0, 1"),
        ('{"grade": 3.0}', "is not one of"),
        ('{"grade": true}', "is not one of"),
        ('{"grade": 4}', "is not one of"),
        ('{"grade": -1}', "is not one of"),
        ('{"grade": 1e0}', "is not one of"),
        ('{"grade": [3]}', "is not one of"),
        ('{"grade": NaN}', "not one JSON object"),
        ('{"grade": 1' + "0" * 5000 + "}", "not one JSON object"),
        ("", "not one JSON object"),
        ("<think>never ends", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        ("x" * 100_001, "too long"),
        (None, "no message"),
        (7, "no message"),
    ],
)
def test_whatever_else_is_malformed(content: object, reason: str) -> None:
    answer = parse_grade(respond(content), GRADES)
    assert (answer.grade, answer.problem) == (None, "malformed")
    assert reason in answer.reason
    assert len(answer.reason) < 400


@pytest.mark.parametrize("data", [None, [], {}, {"choices": []}, {"choices": [None]}, "x", 3])
def test_a_response_without_a_message_is_malformed(data: object) -> None:
    assert parse_grade(data, GRADES).problem == "malformed"


@pytest.mark.parametrize(
    "data",
    [
        respond('{"grade": null}'),
        respond('{"grade": 3}', finish_reason="content_filter"),
        {"choices": [{"message": {"refusal": "I cannot", "content": '{"grade": 3}'}}]},
        {"choices": [{"message": {"refusal": {"x": 1}, "content": None}}]},
    ],
)
def test_a_model_may_refuse(data: object) -> None:
    answer = parse_grade(data, GRADES)
    assert (answer.grade, answer.problem) == (None, "refused")


def test_an_answer_that_was_cut_off_is_malformed_even_if_it_can_be_read() -> None:
    answer = parse_grade(respond('{"grade": 3}', finish_reason="length"), GRADES)
    assert answer.problem == "malformed"
    assert "raise answer_tokens" in answer.reason


def test_a_problem_is_stored_and_read() -> None:
    answer = GradeAnswer(problem="refused", reason="no “words”")
    assert GradeAnswer.from_json(answer.to_json()) == answer
    assert GradeAnswer.from_json(None).problem == "malformed"
    assert GradeAnswer.from_json('{"problem": "unknown"}').problem == "malformed"


REFUSED, MALFORMED = GradeAnswer(problem="refused", reason="no"), GradeAnswer(problem="malformed")


@pytest.mark.parametrize(
    ("given", "how", "grade", "spread"),
    [
        ((2,), "majority", 2, 0.0),
        ((3, 1, 3), "majority", 3, 0.9428),
        ((3, 3, 1, 1), "majority", 1, 1.0),
        ((3, 2), "mean", 2, 0.5),
        ((3, 3, 2), "mean", 3, 0.4714),
        ((0, 3), "mean", 1, 1.5),
    ],
)
def test_grades_of_samples(
    given: tuple[int, ...], how: Literal["majority", "mean"], grade: int, spread: float
) -> None:
    answers = [GradeAnswer(each) for each in given]
    pair = combine_samples(("q", "d"), answers, (0, 1, 2, 3), how)
    assert (pair.grade, pair.samples, pair.problem) == (grade, given, None)
    assert pair.spread == pytest.approx(spread, abs=1e-4)


def test_a_mean_is_the_nearest_grade_of_the_scale() -> None:
    answers = [GradeAnswer(0), GradeAnswer(4), GradeAnswer(4)]
    assert combine_samples(("q", "d"), answers, (0, 4), "mean").grade == 4


def test_more_than_half_of_the_samples_need_a_grade() -> None:
    half = combine_samples(("q", "d"), [GradeAnswer(3), REFUSED], (0, 3), "majority")
    assert (half.grade, half.problem, half.reason) == (None, "refused", "no")
    most = combine_samples(("q", "d"), [GradeAnswer(3), REFUSED, GradeAnswer(3)], (0, 3), "mean")
    assert (most.grade, most.problem) == (3, None)
    mixed = combine_samples(("q", "d"), [REFUSED, MALFORMED, MALFORMED], (0, 3), "mean")
    assert mixed.problem == "malformed"
