"""Time to read and check one record of a search, of each type (NFR-002 of CONV-03-05: 1 ms)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from pydantic import BaseModel

import fusion_bench.schema as schema
from benchmarks.timing import Row, median_seconds
from fusion_bench.schema import SearchResult

TITLE = "Reading one record of a search"
#: Results of the largest record, and the dimensions of its query's embedding.
RESULTS, DIMENSIONS = 20, 384
#: Readings in a row, so that the clock is fine enough.
TIMES = 200


def make_result() -> SearchResult:
    """A page of results with everything that a record may have."""
    scores = dict.fromkeys(("combined", "keyword", "semantic", "graph"), 0.5)
    crag = schema.CRAGScore.of_score(0.5, refined_query="a better query")
    item = {
        "type": "chunk",
        "score": 0.5,
        "relevance": {**scores, "rerank": 0.5, "crag": crag.model_dump()},
        "content": {"text": "A sentence of a chunk. " * 20},
        "highlights": [
            {"field": "text", "fragment": "a chunk", "offsets": [{"start": 2, "end": 7}]}
        ],
        "sources": {"chunkId": "c", "entityIds": ["e1", "e2"], "relationIds": ["r1"]},
    }
    metric = {"enabled": True, "resultCount": 20, "processingTime": 3.5, "topScore": 0.5}
    vector = np.linspace(-1, 1, DIMENSIONS, dtype=np.float32)
    data = {
        "query": {
            "text": "what is in a chunk?",
            "type": "local",
            "embedding": vector,
            "filters": {"fileIds": ["f1"], "dateRange": {}},
            "options": {"cragEnabled": True},
        },
        "results": [{**item, "id": f"c{n}"} for n in range(RESULTS)],
        "totalCount": 100,
        "processingTime": 41.5,
        "strategies": dict.fromkeys(("keyword", "semantic", "graph"), metric),
    }
    return SearchResult.model_validate(data)


def find_records(record: BaseModel) -> Iterator[schema.Record]:
    """The record and those inside it."""
    if isinstance(record, schema.Record):
        yield record
    for _, value in record:
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, BaseModel):
                yield from find_records(each)


def rows(rounds: int, *, toy: bool = False) -> list[Row]:
    """Median time of reading one record of each type, the largest of the type."""
    weights = schema.SearchWeights.of_type(schema.QueryType.LOCAL)
    classification = schema.QueryClassification(
        original_query="what is in a chunk?",
        type=schema.QueryType.LOCAL,
        confidence=0.9,
        extracted_entities=("chunk",),
        suggested_weights=weights,
        expanded_queries=("what does a chunk hold?",),
    )
    roots = (make_result(), classification, schema.RRFConfig(), schema.RerankConfig())
    records = {type(each): each for root in roots for each in find_records(root)}
    times = 1 if toy else TIMES
    medians = median_seconds(
        {
            kind.__name__: partial(_read_often, kind, record.to_json(), times)
            for kind, record in records.items()
        },
        rounds,
    )
    return [{"record": name, "reading µs": 1e6 * each / times} for name, each in medians.items()]


def _read_often(kind: type[schema.Record], text: str, times: int, _turn: int) -> None:
    for _ in range(times):
        kind.from_json(text)
