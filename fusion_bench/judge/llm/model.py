"""One language model that judges, behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from fusion_bench.errors import ProviderError
from fusion_bench.io.specs.families import Family
from fusion_bench.judge.llm.answer import parse_grade
from fusion_bench.rerank.clients import HttpProvider
from fusion_bench.rerank.protocol import Identity, Reply, Reranker, Usage
from fusion_bench.rerank.store import ScoreStore
from fusion_bench.rerank.truncation import approximate_tokens
from fusion_bench.util.http import JsonClient, open_client
from fusion_bench.util.http.json_fields import count_at, mapping_at, text_at

#: Raised when other answers are read, so that stored ones are asked for again.
ANSWER_RULES: Final = "judge/1"
#: Stands for the document of a session: the prompt holds query and passage.
SLOT: Final = ("grade",)
#: Output tokens of an answer, as a rule.
TYPICAL_TOKENS: Final = 8
#: Calls in a row that reach no server before one is ever reached: nobody listens there.
MOST_UNREACHED: Final = 3


class JudgeModel(HttpProvider):
    """``/chat/completions`` of OpenAI or a compatible server, asked for one grade.

    A session of a reranker runs it, with a prompt in place of the query. So limits, retries, prices
    and the store of answers are those of reranking.

    Attributes:
        family: The model's family, such as ``gpt``: ``judges`` of dataset.yaml has it, too.
        temperature: Sampling temperature; None = the provider's own, and none is sent.
        limit_field: How the request names ``answer_tokens``; OpenAI's reasoning models know
            ``max_completion_tokens`` alone.
        answer_tokens: Most output tokens of an answer; a reasoning model needs thousands.
    """

    source: ClassVar[str] = "platform.openai.com/docs/api-reference/chat"
    path: ClassVar[str] = "/chat/completions"

    method: Literal["chat"] = "chat"
    model: str
    family: Family | None = None
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    space: Literal["unbounded"] = "unbounded"
    batch: Literal[1] = 1
    max_tokens: None = None
    tokenizer: None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    answer_tokens: Annotated[int, Field(ge=1)] = 300

    @property
    def model_identity(self) -> Identity:
        """With the rules of answers and the temperature; the prompt is part of each key."""
        degree = "not sent" if self.temperature is None else f"{self.temperature:g}"
        prompt = f"{ANSWER_RULES}, temperature {degree}"
        return replace(super().model_identity, truncation="", prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:  # noqa: ARG002 - the prompt holds all
        """One message with the prompt."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt_of(query)}],
            **({} if self.temperature is None else {"temperature": self.temperature}),
            self.limit_field: self.answer_tokens,
        }

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """Tokens of the prompt and of the answer."""
        usage = mapping_at(data, "usage")
        prompt, answer = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
        return Usage(tokens=prompt, output_tokens=answer)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:  # noqa: ARG002 - as above
        """The prompt, and an answer as it usually is."""
        tokens = approximate_tokens(prompt_of(query))
        return Usage(tokens=tokens, output_tokens=TYPICAL_TOKENS)

    @asynccontextmanager
    async def connect(self, store: ScoreStore, grades: Sequence[int]) -> AsyncIterator[Reranker]:
        """Connect; problems of answers go into the store.

        Raises:
            ConfigError: The key is missing.
            MissingExtraError: httpx is not installed.
        """
        async with open_client(self.base_url, self) as remote:
            yield _ConnectedJudge(self, remote, store, grades)


class _ConnectedJudge:
    """A :class:`JudgeModel` that is connected."""

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
                f"'base_url' of {self._model.model} in the file that --llm names",
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
