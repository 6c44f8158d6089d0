"""Read a language model's answer strictly: one JSON object with one grade of the scale.

Whatever else stands in the message makes it malformed: a lenient reader would take a grade out of a
passage that the model quotes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from fusion_bench.util.http.json_fields import MAX_MESSAGE, mapping_at
from fusion_bench.util.http.strict_json import parse_strict_json

#: ``refused``: the model declines to judge. ``malformed``: the answer holds no grade that can be
#: read. ``failed``: there is no answer.
Problem: TypeAlias = Literal["refused", "malformed", "failed"]
PROBLEMS: Final[tuple[Problem, ...]] = get_args(Problem)
#: Ends what a reasoning model writes before its answer.
THOUGHT_END: Final = "</think>"
#: Characters of an answer that are quoted.
QUOTED: Final = 120


@dataclass(frozen=True)
class GradeAnswer:
    """One answer.

    Attributes:
        grade: The grade; None = there is none.
        problem: Why there is none.
        reason: In words.
        model: The model that answered, as the provider resolved it; empty = nobody did.
    """

    grade: int | None = None
    problem: Problem | None = None
    reason: str = ""
    model: str = ""

    def to_json(self) -> str:
        """The problem of an answer without a grade, as it is stored."""
        return json.dumps({"problem": self.problem, "reason": self.reason})

    @classmethod
    def from_json(cls, text: str | None) -> GradeAnswer:
        """What :meth:`to_json` made; malformed where nothing is stored."""
        stored = {} if text is None else mapping_at(json.loads(text))
        problem = stored.get("problem")
        known = cast("Problem", problem) if problem in PROBLEMS else "malformed"
        return cls(problem=known, reason=str(stored.get("reason", "")))


def parse_grade(
    data: Any,  # noqa: ANN401 - JSON
    grades: Collection[int],
    quote: Callable[[str], str] = repr,
) -> GradeAnswer:
    """The grade in the first choice of a response.

    Args:
        data: The response.
        grades: The grades of the scale.
        quote: Makes a part of the message fit for an error.
    """
    choices = mapping_at(data).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message, choice = mapping_at(first, "message"), mapping_at(first)
    if message.get("refusal"):
        return _refuse(f"refusal: {quote(str(message['refusal'])[:QUOTED])}")
    if choice.get("finish_reason") == "content_filter":
        return _refuse("the content filter of the provider")
    content = message.get("content")
    if not isinstance(content, str) or len(content) > MAX_MESSAGE:
        return GradeAnswer(problem="malformed", reason="no message, or one that is too long")
    if choice.get("finish_reason") == "length":
        reason = f"cut off: {quote(content[-QUOTED:])}: raise answer_tokens"
        return GradeAnswer(problem="malformed", reason=reason)
    return _parse_content(content, grades, quote)


def _parse_content(
    content: str, grades: Collection[int], quote: Callable[[str], str]
) -> GradeAnswer:
    text = content.strip()
    if text.startswith("<think>"):
        text = text.rpartition(THOUGHT_END)[2].strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.removeprefix("```").removeprefix("json").removesuffix("```").strip()
    try:
        answer = parse_strict_json(text)
    except ValueError as error:
        reason = f"not one JSON object ({error}): {quote(text[:QUOTED])}"
        return GradeAnswer(problem="malformed", reason=reason)
    if not isinstance(answer, dict) or "grade" not in answer:
        return GradeAnswer(problem="malformed", reason=f"no 'grade': {quote(text[:QUOTED])}")
    grade = answer["grade"]
    if grade is None:
        return _refuse("the model cannot judge the passage")
    if type(grade) is not int or grade not in grades:  # True is no grade
        listed = ", ".join(map(str, sorted(grades)))
        kind = "a text, and not" if isinstance(grade, str) else "not"
        reason = f"grade {quote(str(grade)[:QUOTED])} is {kind} one of {listed}"
        return GradeAnswer(problem="malformed", reason=reason)
    return GradeAnswer(grade)


def _refuse(reason: str) -> GradeAnswer:
    return GradeAnswer(problem="refused", reason=reason)
