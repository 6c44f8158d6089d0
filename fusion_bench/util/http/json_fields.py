"""Fields of a JSON answer, which may hold anything."""

from __future__ import annotations

from typing import Any, Final

from fusion_bench.errors import ProviderError
from fusion_bench.util.http.server_text import NOT_KEPT, hidden_reason

#: No call is billed more units or tokens.
MAX_COUNT: Final = 10**12
#: Characters of a language model's answer.
MAX_MESSAGE: Final = 100_000


def mapping_at(data: Any, *keys: str) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The mapping under ``keys``; empty if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def count_at(data: Any, *keys: str) -> int:  # noqa: ANN401 - JSON
    """The first of the values that is a whole number from 0; 0 if none is.

    Raises:
        ProviderError: Kind ``malformed``: it is above 10^12.
    """
    fields = data if isinstance(data, dict) else {}
    for key in keys:
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            if value > MAX_COUNT:
                raise malformed_error(f"{key} is above {MAX_COUNT:,}")
            if value % 1 == 0:
                return int(value)
    return 0


def text_at(data: Any, key: str) -> str | None:  # noqa: ANN401 - JSON
    """The non-empty text under a key; None if there is none."""
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, str) and value else None


def message_at(data: Any) -> str:  # noqa: ANN401 - JSON
    """The text of the first choice in the response of a chat endpoint.

    Raises:
        ProviderError: Kind ``malformed``: there is none, or it is too long. Kind ``refused``: the
            key is too short for a text to be kept.
    """
    choices = mapping_at(data).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    content = mapping_at(first, "message").get("content")
    if not isinstance(content, str):
        raise malformed_error("it holds no message")
    if hidden_reason(content) == NOT_KEPT:
        raise ProviderError(f"the answer's message is {NOT_KEPT}", kind="refused")
    if len(content) > MAX_MESSAGE:
        raise malformed_error(f"its message is longer than {MAX_MESSAGE:,} characters")
    return content


def malformed_error(problem: str) -> ProviderError:
    """The error of an answer that makes no sense."""
    return ProviderError(f"malformed answer: {problem}", kind="malformed")
