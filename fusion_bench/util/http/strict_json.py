"""Strict JSON of a server (RFC 8259): nothing that could be read in two ways, or crash later.

Refused: ``NaN`` and ``Infinity``, a key that stands twice in one object, whole numbers of more than
30 digits, bytes that are not UTF-8, and brackets so deep that Python cannot follow.
"""

from __future__ import annotations

import json
from typing import Any, Final

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
