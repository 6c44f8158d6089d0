"""Answers of Qdrant: ``{"result": {"points": [{"id": …, "score": …}]}}``, or a list of points.

Source: https://api.qdrant.tech/api-reference/search/query-points
"""

from __future__ import annotations

from typing import Any

from fusion_bench.io.json_shapes._base import RankedList, register_shape


@register_shape("points")
def find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The points of an answer."""
    result = body.get("result") if isinstance(body, dict) else None
    points = result.get("points") if isinstance(result, dict) else result
    return [RankedList(points)] if isinstance(points, list) else None
