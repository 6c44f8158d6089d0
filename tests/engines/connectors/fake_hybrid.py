"""Weaviate, Vespa 8 and Azure AI Search as their references describe a search."""

import json
import re
from dataclasses import dataclass

from tests.engines.connectors.loopback import (
    DOCUMENTS,
    BadRequestError,
    FakeEngine,
    Json,
    Ranking,
    fuse_ranks,
    order,
    rank_by_cosine,
    rank_by_words,
    require_keys,
)

GET = re.compile(
    r"\{ Get \{ Docs\(limit: (\d+), (\w+): \{(.*)\}\) \{ _additional \{ id (\w+) \}(.*)"
)
NEAR = re.compile(r"\{targetHits: (\d+)\}nearestNeighbor\(embedding, q\)")


@dataclass
class FakeWeaviate(FakeEngine):
    """A collection ``Docs`` over GraphQL; scores are texts, ids are UUIDs.

    Attributes:
        window: QUERY_HYBRID_MAXIMUM_RESULTS of the server.
    """

    window: int = 5

    def answer(self, path: str, body: Json) -> Json:
        if path == "/v1/meta":
            return {"hostname": "http://[::]:8080", "version": "1.33.0", "modules": {}}
        if path == "/v1/schema/Docs":
            return {"class": "Docs", "properties": []}
        if path != "/v1/graphql":
            return None
        require_keys(body, "query")
        if "Aggregate" in body["query"]:
            return {"data": {"Aggregate": {"Docs": [{"meta": {"count": len(DOCUMENTS)}}]}}}
        match = GET.match(body["query"])
        if match is None:
            return {"data": None, "errors": [{"message": f"syntax error in {body['query']}"}]}
        limit, operator, arguments, score, fields = match.groups()
        ranking = self.search(operator, read_arguments(arguments), int(limit))[: int(limit)]
        rows = []
        for name, value in ranking:
            additional = {"id": f"00000000-0000-0000-0000-{int(name[1:]):012}"}
            additional[score] = value if score == "distance" else f"{value:.8f}"  # type: ignore[assignment]
            row: Json = {"_additional": additional}
            if "doc" in fields:
                row["doc"] = name
            if "body" in fields:
                row["body"] = DOCUMENTS[name][0]
            rows.append(row)
        return {"data": {"Get": {"Docs": rows}}}

    def search(self, operator: str, arguments: Json, limit: int) -> Ranking:
        if operator == "bm25":
            require_keys(arguments, "query properties")
            return rank_by_words(arguments["query"])
        if operator == "nearVector":
            require_keys(arguments, "vector", "targetVectors")
            return [(name, 1 - cosine) for name, cosine in rank_by_cosine(arguments["vector"])]
        require_keys(arguments, "query alpha fusionType properties vector", "targetVectors")
        if arguments["fusionType"] != "rankedFusion":
            raise BadRequestError("rankedFusion is needed")
        window, alpha = max(self.window, limit), arguments["alpha"]
        lists = [
            rank_by_words(arguments["query"])[:window],
            rank_by_cosine(arguments["vector"])[:window],
        ]
        return fuse_ranks(lists, lambda n, position: (1 - alpha, alpha)[n] / (60 + position))


def read_arguments(text: str) -> Json:
    """Arguments of GraphQL: names are bare, and so are values of enumerations."""
    quoted = re.sub(r"(^|, )(\w+): ", r'\1"\2": ', text)
    return json.loads("{" + re.sub(r": ([a-zA-Z]\w*)", r': "\1"', quoted) + "}")


@dataclass
class FakeVespa(FakeEngine):
    """Rank profiles ``bm25``, ``near`` and ``fused``, whose rerank-count is its window."""

    window: int = 100
    k: float = 60.0

    def answer(self, path: str, body: Json) -> Json:
        if path == "/state/v1/version":
            return {"version": "8.600.1"}
        if path != "/search/":
            return None
        coverage = {
            "coverage": 100,
            "documents": len(DOCUMENTS),
            "full": True,
            "nodes": 1,
            "results": 1,
            "resultsFull": 1,
        }
        root: Json = {"id": "toplevel", "relevance": 1.0, "coverage": coverage}
        root["fields"] = {"totalCount": len(DOCUMENTS)}
        if body["hits"] == 0:
            return {"root": root}
        require_keys(body, "yql query ranking hits timeout", "input.query(q) language")
        children = [
            {
                "id": f"id:docs:doc::{name}",
                "relevance": score,
                "source": "docs",
                "fields": {"name": name, "body": DOCUMENTS[name][0]},
            }
            for name, score in self.rank(body)[: body["hits"]]
        ]
        return {"root": {**root, "children": children}}

    def rank(self, body: Json) -> Ranking:
        if body["ranking"] == "bm25":
            return rank_by_words(body["query"])
        vector = body["input.query(q)"]
        if body["ranking"] == "near":
            (hits,) = NEAR.findall(body["yql"])
            return rank_by_cosine(vector)[: int(hits)]
        # Every hit has a rank for every feature: those that match no word come last.
        words = dict(rank_by_words(body["query"]))
        lists = [
            order({name: words.get(name, 0.0) for name in DOCUMENTS}),
            rank_by_cosine(vector),
        ]
        return fuse_ranks(
            [ranking[: self.window] for ranking in lists],
            lambda _, position: 1 / (self.k + position + 1),
        )


@dataclass
class FakeAzure(FakeEngine):
    """An index ``docs``; ``admin`` says whether the key may read its definition."""

    header: str = "api-key"
    prefix: str = ""
    version: str = "2025-03-01-preview"
    admin: bool = True

    def answer(self, path: str, body: Json) -> Json:
        place, _, version = path.partition("?api-version=")
        if version != self.version:
            raise BadRequestError(f"unknown version {version}")
        if place == "/indexes/docs/docs/$count":
            return len(DOCUMENTS)
        if place == "/indexes/docs":
            if not self.admin:
                raise BadRequestError("an admin key is needed")
            return {"@odata.etag": "e1", "name": "docs", "fields": []}
        if place != "/indexes/docs/docs/search":
            return None
        require_keys(body, "top select", "search searchFields vectorQueries hybridSearch queryType")
        if body["top"] > 1000:
            raise BadRequestError("top is at most 1000")
        rows = [
            {"@search.score": score, **self.fields(name, body["select"])}
            for name, score in self.rank(body)[: body["top"]]
        ]
        return {"@odata.context": "…", "value": rows}

    def fields(self, name: str, select: str) -> Json:
        fields = {"id": name, "body": DOCUMENTS[name][0]}
        return {key: fields[key] for key in select.split(",")}

    def rank(self, body: Json) -> Ranking:
        lists, weights = [], []
        if "search" in body:
            recall = body.get("hybridSearch", {}).get("maxTextRecallSize", 1000)
            lists.append(rank_by_words(body["search"])[:recall])
            weights.append(1.0)
        for query in body.get("vectorQueries", []):
            require_keys(query, "kind fields k", "vector text weight exhaustive")
            lists.append(rank_by_cosine(query["vector"])[: query["k"]])
            weights.append(query.get("weight", 1.0))
        if len(lists) == 1:
            return lists[0]
        return fuse_ranks(lists, lambda n, position: weights[n] / (60 + position))
