"""Scores from a language model behind an OpenAI-compatible chat endpoint.

Pointwise grades from 0 to 10 for a batch of numbered documents in one prompt. A grade that is
missing or cannot be read becomes 0.5 and is counted; surplus ones are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from fusion_bench.rerank.clients._base import HttpProvider, providers
from fusion_bench.rerank.language_model.prompt import PromptTemplate, read_template
from fusion_bench.rerank.language_model.score_answer import ANSWER_RULES, parse_scores
from fusion_bench.rerank.protocol import Identity, Reply, Usage
from fusion_bench.rerank.truncation import approximate_tokens
from fusion_bench.util.http.json_fields import count_at, mapping_at, message_at, text_at

#: Output tokens of a score and its comma.
TOKENS_A_SCORE = 3
#: Most output tokens of a batch of up to ten documents, and of each document of a larger one.
ANSWER_TOKENS, ANSWER_TOKENS_A_DOCUMENT = 100, 10


@providers.register
class Chat(HttpProvider):
    """``/chat/completions`` of OpenAI or a compatible server.

    Attributes:
        characters: Documents are cut at this length, and end with an ellipsis then.
        temperature: Sampling temperature.
        prompt: A text file with the prompt, see :class:`PromptTemplate`; None = the built-in one.
        answer_tokens: Most tokens of an answer; None = 100, and 10 per document of a batch of more
            than ten. A fixed limit would cut the answer of a large batch, and what is cut off
            cannot be read.
    """

    source: ClassVar[str] = "platform.openai.com/docs/api-reference/chat"
    path: ClassVar[str] = "/chat/completions"

    method: Literal["chat"] = "chat"
    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    batch: Annotated[int, Field(ge=1)] = 10
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    characters: Annotated[int, Field(ge=1)] = 500
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    prompt: Path | None = None
    answer_tokens: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _check_prompt_and_limit(self) -> Chat:
        self.template  # noqa: B018 - raises if the file is no template
        needed = TOKENS_A_SCORE * self.batch
        if self.answer_tokens is not None and self.answer_tokens < needed:
            raise ValueError(
                f"answer_tokens {self.answer_tokens} cannot hold the scores of a batch of "
                f"{self.batch}, which take {TOKENS_A_SCORE} tokens each: give at least {needed}, "
                "or a smaller batch"
            )
        return self

    @cached_property
    def template(self) -> PromptTemplate:
        """The prompt's template, read once."""
        return read_template(self.prompt)

    @property
    def answer_limit(self) -> int:
        """Most tokens of an answer."""
        return self.answer_tokens or max(ANSWER_TOKENS, ANSWER_TOKENS_A_DOCUMENT * self.batch)

    @property
    def model_identity(self) -> Identity:
        """With the digest and the parameters of the prompt."""
        cut = f"{self.characters} characters, {self.truncation.label}"
        prompt = (
            f"{self.template.label}, answer rules {ANSWER_RULES}, batches of {self.batch}, "
            f"temperature {self.temperature:g}, at most {self.answer_limit} tokens"
        )
        return replace(super().model_identity, truncation=cut, prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """One message with the prompt."""
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": self._build_prompt(query, documents)}],
            "temperature": self.temperature,
            "max_tokens": self.answer_limit,
        }

    def _build_prompt(self, query: str, documents: Sequence[str]) -> str:
        return self.template.fill(query, documents, self.characters)

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """The numbers of the first choice's message."""
        scores, unread = parse_scores(message_at(data), count)
        return Reply(scores, text_at(data, "model"), self.parse_usage(data), unread)

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """Tokens of the prompt and of the answer."""
        usage = mapping_at(data, "usage")
        prompt, answer = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
        return Usage(tokens=prompt, output_tokens=answer)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """The prompt, and one grade per document."""
        return Usage(
            tokens=approximate_tokens(self._build_prompt(query, documents)),
            output_tokens=TOKENS_A_SCORE * len(documents),
        )
