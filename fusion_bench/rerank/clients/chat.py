"""Scores from a language model behind an OpenAI-compatible chat endpoint.

Pointwise grades from 0 to 10 for a batch of documents in one prompt. Grades that are missing or
cannot be parsed become 0.5; surplus ones are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fusion_bench.errors import ProviderError
from fusion_bench.rerank.clients._base import (
    HttpProvider,
    integer_at,
    mapping_at,
    providers,
    text_at,
)
from fusion_bench.rerank.protocol import Identity, Reply, Usage
from fusion_bench.rerank.truncation import approximate_tokens

#: Changes with the prompt, so that stored scores of another prompt are not used.
PROMPT_VERSION = "CONV-07-05/1"
#: Replaces a missing score.
MIDDLE = 0.5
HIGHEST = 10.0
#: Output tokens of a score and its comma.
TOKENS_A_SCORE = 3

PROMPT = """\
Rate how relevant each document is to the query, on a scale from 0 (not relevant) to 10 (answers \
the query completely).

Query: {query}

Documents:
{documents}

Answer with {count} numbers between commas, one for each document in the order given, and nothing \
else. Example: 8,3,9,1"""


@providers.register
class Chat(HttpProvider):
    """``/chat/completions`` of OpenAI or a compatible server.

    Attributes:
        characters: Documents are truncated to this length.
        temperature: Sampling temperature.
    """

    source: ClassVar[str] = "platform.openai.com/docs/api-reference/chat"
    path: ClassVar[str] = "/chat/completions"

    method: Literal["chat"] = "chat"
    model: str
    base_url: str = "https://api.openai.com/v1"
    key: str | None = "OPENAI_API_KEY"
    batch: int = 10
    max_tokens: int | None = None
    characters: Annotated[int, Field(ge=1)] = 500
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0

    @property
    def model_identity(self) -> Identity:
        """With the version and the parameters of the prompt."""
        cut = f"{self.characters} characters, {self.truncation.label}"
        prompt = f"{PROMPT_VERSION}, batches of {self.batch}, temperature {self.temperature:g}"
        return replace(super().model_identity, truncation=cut, prompt=prompt)

    def build_request(self, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """One message with the prompt."""
        messages = [{"role": "user", "content": self._build_prompt(query, documents)}]
        return {"model": self.model, "messages": messages, "temperature": self.temperature}

    def _build_prompt(self, query: str, documents: Sequence[str]) -> str:
        cut = [document[: self.characters] for document in documents]
        numbered = "\n".join(f"[{n}] {document}" for n, document in enumerate(cut, start=1))
        return PROMPT.format(query=query, documents=numbered, count=len(documents))

    def parse_reply(self, data: Any, count: int) -> Reply:  # noqa: ANN401 - JSON
        """The numbers of the first choice's message."""
        choices = mapping_at(data).get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        content = mapping_at(first, "message").get("content")
        if not isinstance(content, str):
            raise ProviderError("malformed answer: it holds no message", kind="malformed")
        scores, filled = parse_scores(content, count)
        return Reply(scores, text_at(data, "model"), self.parse_usage(data), filled)

    def parse_usage(self, data: Any) -> Usage:  # noqa: ANN401 - JSON
        """Tokens of the prompt and of the answer."""
        usage = mapping_at(data, "usage")
        prompt, answer = integer_at(usage, "prompt_tokens"), integer_at(usage, "completion_tokens")
        return Usage(tokens=prompt, output_tokens=answer)

    def estimate_usage(self, query: str, documents: Sequence[str]) -> Usage:
        """The prompt, and one grade per document."""
        return Usage(
            tokens=approximate_tokens(self._build_prompt(query, documents)),
            output_tokens=TOKENS_A_SCORE * len(documents),
        )


def parse_scores(content: str, count: int) -> tuple[tuple[float, ...], int]:
    """Scores on the unit scale from ``8, 3, 9``.

    Args:
        content: Output of the model.
        count: Number of documents in the prompt.

    Returns:
        One score per document, and how many of them were filled in. Numbers outside 0 … 10 are
        clipped.
    """
    cells = [_parse_score(cell) for cell in content.split(",")][:count]
    cells += [None] * (count - len(cells))
    return tuple(MIDDLE if cell is None else cell for cell in cells), cells.count(None)


def _parse_score(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return None if math.isnan(value) else min(max(value / HIGHEST, 0.0), 1.0)
