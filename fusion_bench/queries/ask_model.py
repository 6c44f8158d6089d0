"""Questions to a language model whose answers are JSON objects; each is paid for once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusion_bench.retrieve.answers.chat import ChatSettings
from fusion_bench.retrieve.answers.collect import Usage, collect_answers
from fusion_bench.retrieve.answers.store import AnswerStore
from fusion_bench.util.http.strict_json import parse_embedded_object

#: Characters of a document that a prompt quotes.
MOST_QUOTED = 6_000


@dataclass(frozen=True)
class ModelAnswers:
    """What a model answered to some prompts.

    Attributes:
        objects: One per prompt; None = a refusal, or no JSON object.
        usage: What was asked for, and what was known.
    """

    objects: tuple[dict[str, Any] | None, ...]
    usage: Usage

    @property
    def unread(self) -> int:
        """How many answers are no JSON object."""
        return sum(each is None for each in self.objects)


def ask_model(
    settings: ChatSettings,
    prompts: Sequence[str],
    store: Path | None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> ModelAnswers:
    """Ask for a JSON object per prompt.

    Args:
        settings: The model.
        prompts: Whole messages.
        store: SQLite file that keeps the answers; None = in memory.
        on_progress: Called with the number of answers known, and of all.

    Raises:
        ConfigError: The key is missing.
        ProviderError: A call failed for good; answers that came before are stored.
    """

    async def collect() -> tuple[list[bytes], Usage]:
        async with settings.open_chat() as model:
            return await collect_answers(model, prompts, opened, on_progress)

    with closing(AnswerStore(store)) as opened:
        values, usage = asyncio.run(collect())
    return ModelAnswers(tuple(parse_object(value.decode()) for value in values), usage)


def parse_object(answer: str) -> dict[str, Any] | None:
    """The JSON object in an answer, whatever stands around it; None = there is none."""
    try:
        return parse_embedded_object(answer)
    except ValueError:
        return None


def quote_document(text: str) -> str:
    """A document between two lines of marks that it cannot hold itself."""
    plain = " ".join(text.split())[:MOST_QUOTED].replace("<<<", "<").replace(">>>", ">")
    return f"<<<\n{plain}\n>>>"
