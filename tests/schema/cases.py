"""Records that are valid, to change one thing of."""

from typing import Any

import pytest
from pydantic import ValidationError

from fusion_bench.schema.record_fields import Record

WEIGHTS = {"keyword": 0.35, "semantic": 0.35, "graph": 0.30}
METRIC = {"enabled": True, "resultCount": 1, "processingTime": 2.5, "topScore": 0.9}
SCORES = {"combined": 0.85, "keyword": 0.7, "semantic": 0.9, "graph": 0.8}


def make_query(**options: object) -> dict[str, Any]:
    return {"text": "what is a lich?", "type": "local", "filters": {}, "options": options}


def make_item(**changes: object) -> dict[str, Any]:
    return {
        "id": "c1",
        "type": "chunk",
        "score": 0.5,
        "relevance": SCORES,
        "content": {"text": "A lich is …"},
        "highlights": [],
        "sources": {"chunkId": "c1", "entityIds": [], "relationIds": []},
        **changes,
    }


def make_result(**changes: object) -> dict[str, Any]:
    return {
        "query": make_query(),
        "results": [make_item()],
        "totalCount": 1,
        "processingTime": 12,
        "strategies": {"keyword": METRIC, "semantic": METRIC, "graph": METRIC},
        **changes,
    }


def messages(model: type[Record], data: object) -> list[str]:
    """What pydantic says of each thing wrong."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(data)
    return [str(error["msg"]) for error in caught.value.errors()]


def broken_keys(model: type[Record], data: object) -> list[tuple[int | str, ...]]:
    """Where something is wrong."""
    with pytest.raises(ValidationError) as caught:
        model.model_validate(data)
    return [error["loc"] for error in caught.value.errors()]
