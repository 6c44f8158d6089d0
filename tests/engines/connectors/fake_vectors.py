"""Qdrant 1.19, Milvus 2.6 and Chroma 1.x as their references describe their HTTP interfaces."""

import math
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


def euclid(cosine: float) -> float:
    return math.sqrt(max(0.0, 2 - 2 * cosine))


def rank_by_sparse(weights: dict[int, float]) -> Ranking:
    """Dimension 0 counts ``red``, dimension 1 ``apple``."""
    words = " ".join("red" if dimension == 0 else "apple" for dimension in sorted(weights))
    return rank_by_words(words)


@dataclass
class FakeQdrant(FakeEngine):
    """A collection of points with numbers as ids, vectors ``dense`` (Euclid) and ``words``."""

    header: str = "api-key"
    prefix: str = ""

    def answer(self, path: str, body: Json) -> Json:
        if path == "/":
            return {"title": "qdrant - vector search engine", "version": "1.19.0", "commit": "x"}
        if path == "/collections/docs":
            vectors = {"dense": {"size": 2, "distance": "Euclid"}}
            params = {"vectors": vectors, "sparse_vectors": {"words": {}}}
            result = {"status": "green", "points_count": 9, "config": {"params": params}}
            return {"result": result, "status": "ok", "time": 0.0}
        if path == "/collections/docs/points/count":
            return {"result": {"count": len(DOCUMENTS)}, "status": "ok", "time": 0.0}
        if path == "/collections/docs/points/scroll":
            require_keys(body, "limit with_payload with_vector", "offset")
            names = [name for name in sorted(DOCUMENTS) if int(name[1:]) >= body.get("offset", 0)]
            points = [
                {"id": int(n[1:]), "payload": {"doc": n, "body": DOCUMENTS[n][0]}} for n in names
            ]
            page, rest = points[: body["limit"]], points[body["limit"] :]
            following = rest[0]["id"] if rest else None
            return {"result": {"points": page, "next_page_offset": following}, "status": "ok"}
        if path != "/collections/docs/points/query":
            return None
        require_keys(body, "query limit with_payload with_vector", "prefetch using params")
        points = []
        for name, score in self.rank(body)[: body["limit"]]:
            point: Json = {"id": int(name[1:]), "version": 1, "score": score}
            fields = {"doc": name, "body": DOCUMENTS[name][0]}
            if body["with_payload"]:
                point["payload"] = {key: fields[key] for key in body["with_payload"]}
            points.append(point)
        return {"result": {"points": points}, "status": "ok", "time": 0.001}

    def rank(self, body: Json) -> Ranking:
        if "prefetch" not in body:
            return self.search(body)
        rrf = body["query"]["rrf"]
        weights = rrf.get("weights", [1.0] * len(body["prefetch"]))
        lists = [self.search(each)[: each["limit"]] for each in body["prefetch"]]
        return fuse_ranks(lists, lambda n, place: 1 / ((place + 1) / weights[n] + rrf["k"] - 1))

    def search(self, body: Json) -> Ranking:
        query = body["query"]
        if body["using"] == "dense":
            return [(name, euclid(cosine)) for name, cosine in rank_by_cosine(query)]
        if "model" in query:
            return rank_by_words(query["text"])
        require_keys(query, "indices values")
        return rank_by_sparse(dict(zip(query["indices"], query["values"], strict=True)))


@dataclass
class FakeMilvus(FakeEngine):
    """A collection with fields ``dense`` (L2) and ``words`` (BM25); ids are texts of numbers."""

    def answer(self, path: str, body: Json) -> Json:
        if not path.startswith("/v2/vectordb/"):
            return None
        if body["collectionName"] != "docs" or body["dbName"] != "default":
            return {"code": 100, "message": "can't find collection"}
        action = path.removeprefix("/v2/vectordb")
        if action == "/collections/get_stats":
            return {"code": 0, "data": {"rowCount": len(DOCUMENTS)}}
        if action == "/collections/describe":
            fields = [{"name": "pk", "primaryKey": True}, {"name": "dense", "primaryKey": False}]
            indexes = [
                {"fieldName": "dense", "metricType": "L2"},
                {"fieldName": "words", "metricType": "BM25"},
            ]
            return {"code": 0, "data": {"fields": fields, "indexes": indexes, "load": "loaded"}}
        place = "dbName collectionName limit outputFields"
        if action == "/entities/search":
            require_keys(body, f"{place} data annsField", "searchParams")
            ranking = self.search(body)
        elif action == "/entities/hybrid_search":
            require_keys(body, f"{place} search rerank")
            lists = [self.search(search)[: search["limit"]] for search in body["search"]]
            ranking = self.fuse(body["rerank"], lists)
        else:
            return None
        rows = [
            {"distance": score, **self.fields(name, body["outputFields"])}
            for name, score in ranking[: body["limit"]]
        ]
        return {"code": 0, "cost": 0, "data": rows, "topks": [len(rows)]}

    def fields(self, name: str, wanted: list[str]) -> Json:
        fields = {"pk": name[1:], "doc": name, "body": DOCUMENTS[name][0]}
        return {key: fields[key] for key in wanted}

    def search(self, body: Json) -> Ranking:
        (data,) = body["data"]
        if body["annsField"] == "dense":
            return [(name, euclid(cosine) ** 2) for name, cosine in rank_by_cosine(data)]
        if isinstance(data, str):
            return rank_by_words(data)
        return rank_by_sparse({int(key): weight for key, weight in data.items()})

    def fuse(self, rerank: Json, lists: list[Ranking]) -> Ranking:
        require_keys(rerank, "strategy params")
        if rerank["strategy"] != "rrf":
            raise BadRequestError("rrf is needed")
        k = rerank["params"]["k"]
        return fuse_ranks(lists, lambda _, position: 1 / (k + position + 1))


@dataclass
class FakeChroma(FakeEngine):
    """A collection with the embedding ``#embedding`` and, for the search API, ``words``."""

    header: str = "x-chroma-token"
    prefix: str = ""

    def answer(self, path: str, body: Json) -> Json:
        if path == "/api/v2/version":
            return "1.5.9"
        place = "/api/v2/tenants/default_tenant/databases/default_database/collections"
        action = path.removeprefix(place)
        if action == "/docs":
            return {"id": "uuid", "name": "docs", "configuration_json": {}, "dimension": 2}
        if action == "/uuid/count":
            return len(DOCUMENTS)
        if action == "/uuid/get":
            require_keys(body, "include limit offset")
            names = sorted(DOCUMENTS)[body["offset"] :][: body["limit"]]
            return {"ids": names, "documents": [DOCUMENTS[name][0] for name in names]}
        if action == "/uuid/query":
            require_keys(body, "query_embeddings n_results include")
            (vector,) = body["query_embeddings"]
            ranking = self.distances(vector)[: body["n_results"]]
            wanted = set(body["include"])
            return {**columns(ranking, "distances", with_text="documents" in wanted)}
        if action == "/uuid/search":
            (search,) = body["searches"]
            require_keys(search, "rank limit select")
            ranking = self.rank(search["rank"])[: search["limit"]["limit"]]
            wanted = set(search["select"]["keys"])
            return columns(ranking, "scores", with_text="#document" in wanted)
        return None

    def distances(self, vector: list[float]) -> Ranking:
        return [(name, 1 - cosine) for name, cosine in rank_by_cosine(vector)]

    def rank(self, rank: Json) -> Ranking:
        if "$knn" in rank:
            return self.nearest(rank["$knn"])
        minus, total = rank["$mul"]
        if minus != {"$val": -1}:
            raise BadRequestError("an rrf is negated")
        terms = []
        for term in total["$sum"]:
            constant, knn = term["$div"]["right"]["$sum"]
            if not knn["$knn"]["return_rank"]:
                raise BadRequestError("return_rank is needed")
            weight = term["$div"]["left"]["$val"]
            ranking = self.nearest(knn["$knn"])
            positions = {name: place for place, (name, _) in enumerate(ranking)}
            missing = knn["$knn"].get("default")
            terms.append((weight, constant["$val"], positions, missing))
        scores = {}
        for name in DOCUMENTS:
            places = [positions.get(name, missing) for _, _, positions, missing in terms]
            if None not in places and any(name in positions for _, _, positions, _ in terms):
                scores[name] = -sum(
                    weight / (k + place)
                    for (weight, k, _, _), place in zip(terms, places, strict=True)
                )
        return sorted(scores.items(), key=lambda item: (item[1], item[0]))

    def nearest(self, knn: Json) -> Ranking:
        require_keys(knn, "query key limit", "default return_rank")
        if knn["key"] == "#embedding":
            ranking = self.distances(knn["query"])
        else:
            vector = knn["query"]
            require_keys(vector, "#type indices values")
            weights = dict(zip(vector["indices"], vector["values"], strict=True))
            ranking = [(name, 1 - score) for name, score in rank_by_sparse(weights)]
        return ranking[: knn["limit"]]


def columns(ranking: Ranking, scores: str, *, with_text: bool) -> Json:
    return {
        "ids": [[name for name, _ in ranking]],
        scores: [[score for _, score in ranking]],
        "documents": [[DOCUMENTS[name][0] for name, _ in ranking]] if with_text else None,
    }
