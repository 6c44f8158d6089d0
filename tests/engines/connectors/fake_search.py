"""Elasticsearch 9.2 and OpenSearch 3.5 as their references describe ``POST /INDEX/_search``."""

import json
from dataclasses import dataclass

from tests.engines.connectors.loopback import (
    DOCUMENTS,
    BadRequestError,
    FakeEngine,
    Json,
    Ranking,
    fuse_ranks,
    rank_by_cosine,
    rank_by_words,
    require_keys,
)

SHARDS = {"total": 2, "successful": 2, "skipped": 0, "failed": 0}


@dataclass
class FakeElasticsearch(FakeEngine):
    """``standard``, ``knn``, ``rrf`` and ``linear`` retrievers."""

    prefix: str = "ApiKey "
    version: str = "9.2.1"

    def answer(self, path: str, body: Json) -> Json:
        if body is None:
            return {
                "/": {"version": {"number": self.version}, "tagline": "You Know, for Search"},
                "/docs/_count": {"count": len(DOCUMENTS), "_shards": SHARDS},
                "/docs/_mapping": {"docs": {"mappings": {"properties": {"body": {}}}}},
                "/docs/_settings": {"docs": {"settings": {"index": {"uuid": "u1"}}}},
            }.get(path)
        if "scroll" in path:
            return self.scroll(path, body)
        if path != ("/docs/_search" if "retriever" in body else self.path_of(body)):
            return None
        ranking = self.rank(body)[: body["size"]]
        return {
            "took": 3,
            "timed_out": False,
            "_shards": SHARDS,
            "hits": {
                "max_score": ranking[0][1] if ranking else None,
                "hits": [
                    {"_index": "docs", "_id": name, "_score": score, **self.source(name, body)}
                    for name, score in ranking
                ],
            },
        }

    def scroll(self, path: str, body: Json) -> Json:
        if path == "/_search/scroll":
            start, size, fields = map(json.loads, body["scroll_id"].split("|"))
        else:
            require_keys(body, "size sort query _source")
            start, size, fields = 0, body["size"], body["_source"]
        names = sorted(DOCUMENTS)[start : start + size]
        rows = [{"_id": n, "_score": None, **self.source(n, {"_source": fields})} for n in names]
        place = "|".join(map(json.dumps, (start + size, size, fields)))
        return {"_scroll_id": place, "_shards": SHARDS, "hits": {"hits": rows}}

    def path_of(self, body: Json) -> str:
        """Where a search is sent."""
        raise BadRequestError(f"no retriever: {sorted(body)}")

    def source(self, name: str, body: Json) -> Json:
        if body["_source"] is False:
            return {}
        # A field with dots comes nested.
        fields = {"meta.body": {"meta": {"body": DOCUMENTS[name][0]}}}
        return {"_source": {k: v for key in body["_source"] for k, v in fields[key].items()}}

    def rank(self, body: Json) -> Ranking:
        require_keys(body, "retriever size _source", "track_total_hits")
        return self.retrieve(body["retriever"])

    def retrieve(self, retriever: Json) -> Ranking:
        ((kind, body),) = retriever.items()
        if kind == "standard":
            return rank_by_words(match_text(body["query"]))
        if kind == "knn":
            require_keys(body, "field query_vector k num_candidates")
            if not body["k"] <= body["num_candidates"] <= 10_000:
                raise BadRequestError("k is at most num_candidates, and that 10000")
            ranking = rank_by_cosine(body["query_vector"])[: body["k"]]
            return [(name, (1 + cosine) / 2) for name, cosine in ranking]
        if kind != "rrf":
            raise BadRequestError(f"unknown retriever {kind}")
        require_keys(body, "retrievers rank_window_size rank_constant")
        lists = [self.retrieve(e["retriever"]) for e in body["retrievers"]]
        weights = [entry["weight"] for entry in body["retrievers"]]
        window, constant = body["rank_window_size"], body["rank_constant"]
        cut = [ranking[:window] for ranking in lists]
        return fuse_ranks(cut, lambda n, position: weights[n] / (constant + position + 1))


@dataclass
class FakeOpenSearch(FakeElasticsearch):
    """``match``, ``knn`` and ``hybrid`` queries with a search pipeline in the request."""

    prefix: str = "Basic "
    version: str = "3.5.0"

    def path_of(self, body: Json) -> str:
        # A leg alone switches the default pipeline of the index off.
        is_fused = "search_pipeline" in body
        return "/docs/_search" if is_fused else "/docs/_search?search_pipeline=_none"

    def rank(self, body: Json) -> Ranking:
        require_keys(body, "query size _source", "search_pipeline track_total_hits")
        if "hybrid" not in body["query"]:
            return self.search(body["query"])
        hybrid = body["query"]["hybrid"]
        require_keys(hybrid, "queries pagination_depth")
        (processor,) = body["search_pipeline"]["phase_results_processors"]
        combination = processor["score-ranker-processor"]["combination"]
        weights = combination["parameters"]["weights"]
        if abs(sum(weights) - 1) > 0.01:
            raise BadRequestError("the sum of weights is 1")
        lists = [self.search(query)[: hybrid["pagination_depth"]] for query in hybrid["queries"]]
        constant = combination["rank_constant"]
        return fuse_ranks(lists, lambda n, position: weights[n] / (constant + position + 1))

    def search(self, query: Json) -> Ranking:
        ((kind, body),) = query.items()
        if kind in {"match", "multi_match"}:
            return rank_by_words(match_text(query))
        ((_, options),) = body.items()
        if kind == "neural":
            require_keys(options, "query_text model_id k")
            return rank_by_words(options["query_text"])[: options["k"]]
        require_keys(options, "vector k")
        ranking = rank_by_cosine(options["vector"])[: options["k"]]
        return [(name, (1 + cosine) / 2) for name, cosine in ranking]


def match_text(query: Json) -> str:
    ((kind, body),) = query.items()
    if kind == "multi_match":
        require_keys(body, "query fields")
        return str(body["query"])
    if kind != "match":
        raise BadRequestError(f"unknown query {kind}")
    ((_, options),) = body.items()
    return str(options["query"])
