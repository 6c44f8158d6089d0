"""What the connectors read in the answers of engines behind HTTP."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from typing import Any

from fusion_bench.connector import PullQuery
from fusion_bench.connector.hits import incomplete_error
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.util.digests import hash_values
from fusion_bench.util.http import JsonClient
from fusion_bench.util.http.json_fields import malformed_error

#: Hexadecimal digits of a digest in a fingerprint.
DIGEST_DIGITS = 32


def rows_at(data: Any, *keys: str) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """The list of objects under ``keys``.

    Raises:
        ProviderError: Kind ``malformed``: there is none.
    """
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise malformed_error(f"it has no list of objects under {'.'.join(keys)!r}")
    return data


def value_at(data: Any, *keys: str) -> Any:  # noqa: ANN401 - JSON
    """Whatever stands under ``keys``; None if nothing does."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def number_at(data: Any, *keys: str) -> int | float | None:  # noqa: ANN401 - JSON
    """The count or the share under ``keys``; None if nothing is there.

    Raises:
        ProviderError: Kind ``malformed``: it is no number.
    """
    value = value_at(data, *keys)
    if value is None or type(value) in {int, float}:  # True is no number
        return value  # type: ignore[no-any-return]
    raise malformed_error(f"{'.'.join(keys) or 'the count'} is no number")


def digest_of(data: Any) -> str:  # noqa: ANN401 - JSON
    """A digest of a JSON value, whatever the order of its keys."""
    return hash_values(json.dumps(data, sort_keys=True))[:DIGEST_DIGITS]


async def get_permitted(client: JsonClient, path: str) -> Any:  # noqa: ANN401 - JSON
    """The answer to GET; None where the server refuses it, as it may a key for searches alone.

    Raises:
        ProviderError: The request failed for another reason.
    """
    try:
        return await client.get_json(path)
    except ProviderError as error:
        if error.kind != "refused":
            raise
        return None


def refuse_error(client: JsonClient, data: Any, *keys: str) -> None:  # noqa: ANN401 - JSON
    """Refuse an answer of status 200 that states an error, whatever else it holds.

    Args:
        client: Quotes what the server says.
        data: The answer.
        keys: Where an error stands; by default under ``error`` or ``errors``.

    Raises:
        ProviderError: Kind ``server``.
    """
    errors = value_at(data, *keys) if keys else value_at(data, "error") or value_at(data, "errors")
    if errors:
        first = errors[0] if isinstance(errors, list) else errors
        named = value_at(first, "message") or value_at(first, "reason") or first
        raise incomplete_error(f"the engine reports {client.quote_text(str(named))}")


def path_of(*parts: str) -> str:
    """The path of a URL: each part quoted."""
    return "".join(f"/{urllib.parse.quote(part, safe=',*$')}" for part in parts)


def vector_of(query: PullQuery, leg: str) -> list[float]:
    """The vector that a leg searches by.

    Raises:
        ConfigError: The query has none.
    """
    if leg not in query.vectors:
        raise ConfigError(f"query {query.id!r} has no vector for leg {leg!r}: see --vectors")
    return list(query.vectors[leg])


def sparse_vector_of(query: PullQuery, leg: str) -> Mapping[int, float]:
    """The sparse vector that a leg searches by.

    Raises:
        ConfigError: The query has none.
    """
    if leg not in query.sparse_vectors:
        raise ConfigError(f"query {query.id!r} has no sparse vector for leg {leg!r}: see --vectors")
    return query.sparse_vectors[leg]


def require_text_field(name: str | None, *, texts: bool) -> str | None:
    """The field with the text of a document where texts are wanted, else None.

    Raises:
        ConfigError: Texts are wanted, and no field is configured.
    """
    if texts and name is None:
        raise ConfigError("--texts: set text_field to the field that holds a document's text")
    return name if texts else None


def signed_score(score: object, sign: int) -> object:
    """A score, or the negative of a distance; what is no number stays, for it is refused later.

    Args:
        score: What an engine sent.
        sign: −1 where it is a distance, else 1.
    """
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    return 0.0 - score if is_number and sign < 0 else score  # type: ignore[operator]


def field_at(fields: Any, name: str) -> Any:  # noqa: ANN401 - JSON
    """The field of a document, also where a name with dots is nested; None if there is none."""
    value = value_at(fields, name)
    return value if value is not None else value_at(fields, *name.split("."))
