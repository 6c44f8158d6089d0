"""One language model that judges, behind a chat endpoint; several answers become one grade.

Whatever else stands in the message makes it malformed: a lenient reader would take a grade out of a
passage that the model quotes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_args

from pydantic import Field

from fusion_bench.errors import ProviderError
from fusion_bench.io.dataset_config import Family
from fusion_bench.models.answer_stores import ScoreStore
from fusion_bench.models.reranker_protocol import Identity, Reply, Usage, approximate_tokens
from fusion_bench.models.rerankers import ChatProvider
from fusion_bench.util.http_client import JsonClient
from fusion_bench.util.json_text import MAX_MESSAGE, mapping_at, parse_strict_json, text_at

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
        return _malformed("no message, or one that is too long")
    if choice.get("finish_reason") == "length":
        return _malformed(f"cut off: {quote(content[-QUOTED:])}: raise answer_tokens")
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
        return _malformed(f"not one JSON object ({error}): {quote(text[:QUOTED])}")
    if not isinstance(answer, dict) or "grade" not in answer:
        return _malformed(f"no 'grade': {quote(text[:QUOTED])}")
    grade = answer["grade"]
    if grade is None:
        return _refuse("the model cannot judge the passage")
    if type(grade) is not int or grade not in grades:  # True is no grade
        listed = ", ".join(map(str, sorted(grades)))
        kind = "a text, and not" if isinstance(grade, str) else "not"
        return _malformed(f"grade {quote(str(grade)[:QUOTED])} is {kind} one of {listed}")
    return GradeAnswer(grade)


def _refuse(reason: str) -> GradeAnswer:
    return GradeAnswer(problem="refused", reason=reason)


def _malformed(reason: str) -> GradeAnswer:
    return GradeAnswer(problem="malformed", reason=reason)


#: Raised when other answers are read, so that stored ones are asked for again.
ANSWER_RULES: Final = "judge/1"
#: Stands for the document of a session: the prompt holds query and passage.
SLOT: Final = ("grade",)
#: Output tokens of an answer, as a rule.
TYPICAL_TOKENS: Final = 8
#: Calls in a row that reach no server before one is ever reached: nobody listens there.
MOST_UNREACHED: Final = 3


class JudgeModel(ChatProvider):
    """A chat endpoint that is asked for one grade.

    A session of a reranker runs it, with a prompt in place of the query. So limits, retries, prices
    and the store of answers are those of reranking.

    Attributes:
        family: The model's family, such as ``gpt``: ``judges`` of dataset.yaml has it, too.
        limit_field: How the request names ``answer_tokens``; OpenAI's reasoning models know
            ``max_completion_tokens`` alone.
        answer_tokens: Most output tokens of an answer; a reasoning model needs thousands.
    """

    family: Family | None = None
    space: Literal["unbounded"] = "unbounded"
    batch: Literal[1] = 1
    max_tokens: None = None
    tokenizer: None = None
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    answer_tokens: Annotated[int, Field(ge=1)] = 300

    @property
    def model_identity(self) -> Identity:
        """With the rules of answers and the temperature; the prompt is part of each key."""
        prompt = f"{ANSWER_RULES}, {self.degree}"
        return replace(super().model_identity, truncation="", prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - the prompt holds all
        """One message with the prompt."""
        return self.build_message(prompt_of(query), self.answer_tokens, self.limit_field)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - as above
        """The prompt, and an answer as it usually is."""
        tokens = approximate_tokens(prompt_of(query))
        return Usage(tokens=tokens, output_tokens=TYPICAL_TOKENS)


class ConnectedJudge:
    """A :class:`JudgeModel` that is connected; stores problems of its answers."""

    def __init__(
        self, model: JudgeModel, remote: JsonClient, store: ScoreStore, grades: Sequence[int]
    ) -> None:
        self.identity = model.model_identity
        self.batch: int = model.batch
        self._model, self._remote, self._store, self._grades = model, remote, store, grades
        self._is_reached, self._unreached = False, 0

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        """Ask for one grade; an answer without one is an unread score."""
        model = self._model
        data = await self._post(model.build_request(query, documents))
        answer = parse_grade(data, self._grades, self._remote.quote_text)
        if answer.grade is None:
            self._store.save_answer(self.identity, query, answer.to_json())
        return Reply(
            (float(answer.grade or 0),),
            self._remote.read_name(text_at(data, "model")),
            model.parse_usage(data),
            () if answer.grade is not None else (0,),
        )

    async def _post(self, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """The answer to a request.

        Raises:
            ProviderError: It failed; as a refusal, which ends the run, where no server answers.
        """
        try:
            data = await self._remote.post_json(self._model.path, body)
        except ProviderError as error:
            if error.kind != "connection" or error.is_billable:  # a server took the request
                self._is_reached = True
            self._unreached += 1
            if self._is_reached or self._unreached < MOST_UNREACHED:
                raise
            raise ProviderError(
                f"no server answers at {self._model.base_url} ({error}): start it, or correct "
                f"'base_url' of {self._model.model} in the file that --llm-config names",
                kind="refused",
            ) from error
        self._is_reached = True
        return data


def make_key(prompt: str, sample: int, attempt: int) -> str:
    """What stands for a query in session and store: sample and attempt, 1-based, and the prompt."""
    return f"{sample}.{attempt}\0{prompt}"


def prompt_of(key: str) -> str:
    """The prompt in what :func:`make_key` made."""
    return key.partition("\0")[2]
