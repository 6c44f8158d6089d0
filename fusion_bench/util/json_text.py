"""JSON as text: lines of objects, keys that appear twice, strict answers of a server.

Refused: ``NaN`` and ``Infinity``, a key that appears twice in one object, whole numbers of more
than 30 digits, bytes that are not UTF-8, and brackets so deep that Python cannot follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from fusion_bench.errors import DataError, ProviderError


def encode_json_lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """The objects in UTF-8, each on a line that ends with a line feed.

    Half of a surrogate pair, which UTF-8 cannot hold, becomes its escape: JSON reads it as the
    same.
    """
    text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)
    return text.encode(errors="backslashreplace")


def refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys, for ``json.loads(…, object_pairs_hook=refuse_repeated_keys)``.

    Raises:
        DataError: A key appears twice, such as a query, or a document within one.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in value if keys.count(key) > 1)
        raise DataError(f"the key {repeated!r} appears twice in one object: keep one")
    return value


#: Digits of a whole number; a score or a count has fewer, and each such number is a finite float.
MAX_DIGITS: Final = 30


def parse_strict_json(data: bytes | str) -> Any:  # noqa: ANN401 - JSON
    """The value of a JSON document.

    Raises:
        ValueError: It breaks a rule. The message quotes nothing of the document.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
        return json.loads(
            text,
            object_pairs_hook=_refuse_repeated_keys,
            parse_constant=_refuse_constant,
            parse_int=_parse_whole_number,
        )
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    except RecursionError:
        raise ValueError("its brackets are too deep") from None


def parse_embedded_object(text: str) -> dict[str, Any]:
    """The JSON object in a text, as language models answer; what stands around it is ignored.

    Raises:
        ValueError: There is none, or it breaks a rule.
    """
    start, end = text.find("{"), text.rfind("}")
    value: dict[str, Any] = parse_strict_json(text[start : end + 1])  # whatever has braces is one
    return value


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object holds a key twice")
    return fields


def _refuse_constant(_: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError("NaN and Infinity are not JSON")


def _parse_whole_number(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a whole number has more than {MAX_DIGITS} digits")
    return int(text)


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
        ProviderError: Kind ``malformed``: there is none, or it is too long.
    """
    choices = mapping_at(data).get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    content = mapping_at(first, "message").get("content")
    if not isinstance(content, str):
        raise malformed_error("it holds no message")
    if len(content) > MAX_MESSAGE:
        raise malformed_error(f"its message is longer than {MAX_MESSAGE:,} characters")
    return content


def malformed_error(problem: str) -> ProviderError:
    """The error of an answer that makes no sense."""
    return ProviderError(f"malformed answer: {problem}", kind="malformed")
