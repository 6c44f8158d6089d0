"""What every connector behind HTTP holds, up to a dataset that replays its fusion."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import fusion_bench
from fusion_bench.engines.connectors import (
    Hit,
    HttpConnector,
    _sessions,
    chroma,
    connectors,
    qdrant,
    search_api,
)
from fusion_bench.engines.options import PullOptions
from fusion_bench.engines.pull import pull_dataset
from fusion_bench.errors import ConfigError, ProviderError
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import load_dataset
from tests.engines.connectors.cases import CASES, QUERY, Case
from tests.engines.connectors.loopback import (
    DOCUMENTS,
    FakeEngine,
    Json,
    rank_by_cosine,
    rank_by_words,
    serving,
)
from tests.engines.local import cases
from tests.engines.local.cases import ask, list_texts

ORDERS = {
    "words": [name for name, _ in rank_by_words(QUERY.text)],
    "dense": [name for name, _ in rank_by_cosine(QUERY.vectors["dense"])],
}


@pytest.fixture(params=CASES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(name: str) -> Case:
    return CASES[name]


@pytest.fixture
def engine(case: Case) -> Iterator[FakeEngine]:
    with serving(case.engine()) as running:
        yield running


def build(name: str, engine: FakeEngine, **settings: object) -> HttpConnector:
    connector = connectors.build(
        {"method": name, "url": engine.url, **CASES[name].settings, **settings}
    )
    assert isinstance(connector, HttpConnector)
    return connector


def read(connector: HttpConnector, leg: str, depth: int, *, texts: bool = False) -> tuple[Hit, ...]:
    connector.check_depth(leg, depth)
    return cases.read(connector, leg, depth, texts=texts, query=QUERY)


def test_every_connector_behind_http_of_the_package_has_a_case() -> None:
    generic = {"http"}
    behind_http = {
        name
        for name, model in connectors.load_built_in().items()
        if issubclass(model, HttpConnector)
    }
    assert behind_http - generic == set(CASES)


@pytest.mark.parametrize("name", ["chroma", "elasticsearch", "opensearch", "qdrant"])
def test_every_document_is_listed_once(
    name: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_sessions, chroma, qdrant, search_api):
        monkeypatch.setattr(module, "PAGE", 3)
    hits = list_texts(build(name, engine))
    assert len(hits) == len(DOCUMENTS)
    assert {hit.document: hit.text for hit in hits} == {k: v[0] for k, v in DOCUMENTS.items()}


@pytest.mark.parametrize("leg", ["words", "dense"])
@pytest.mark.parametrize("depth", [2, 5])
def test_a_leg_has_the_order_of_the_engine(
    name: str, engine: FakeEngine, leg: str, depth: int
) -> None:
    hits = read(build(name, engine, fused=None, **without_fused(name)), leg, depth)
    assert [hit.document for hit in hits] == ORDERS[leg][:depth]
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    assert all(hit.text is None for hit in hits)


def without_fused(name: str) -> dict[str, None]:
    return {"fused_yql": None} if name == "vespa" else {}


def test_a_leg_has_its_texts_and_a_distance_is_negated(
    name: str, case: Case, engine: FakeEngine
) -> None:
    hits = read(build(name, engine), "dense", 3)
    assert all((hit.score <= 0) == case.is_distance for hit in hits)
    hits = read(build(name, engine), "words", 3, texts=True)
    assert [hit.text for hit in hits] == [DOCUMENTS[hit.document][0] for hit in hits]


def test_the_dialect_replays_the_fused_answer(name: str, case: Case, engine: FakeEngine) -> None:
    connector = build(name, engine)
    lists = {leg: read(connector, leg, case.depth) for leg in connector.legs}
    if name == "vespa":  # there every hit has a score for every leg
        lists["words"] += tuple(
            Hit(document, 0.0) for document in sorted(set(DOCUMENTS) - set(ORDERS["words"]))
        )
    fused = read(connector, "", case.depth)
    replay = connector.describe_replay(case.depth)
    assert replay is not None
    system = System("replay", [*lists], dialect=connector.dialect, **replay)
    runs = {leg: {"q1": {h.document: h.score for h in hits}} for leg, hits in lists.items()}
    order = [*fusion_bench.fuse(runs, system).to_dict()["q1"]]
    documents = [hit.document for hit in fused]
    assert documents == order[: case.depth]
    assert documents not in [[hit.document for hit in hits] for hits in lists.values()]


def test_the_fingerprint_is_stable_and_changes_with_the_index(
    name: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = build(name, engine)
    first = ask(connector, lambda session: session.read_fingerprint())
    assert first["documents"] == len(DOCUMENTS)
    assert first == ask(connector, lambda session: session.read_fingerprint())
    monkeypatch.setitem(DOCUMENTS, "d8", ("new", (1.0, 0.0)))
    assert first != ask(connector, lambda session: session.read_fingerprint())


def test_the_key_stands_in_the_header_that_the_engine_reads(
    name: str, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGINE_KEY", "secret-key-1234")
    engine.key = "secret-key-1234" if engine.prefix != "Basic " else "c2VjcmV0LWtleS0xMjM0"
    assert read(build(name, engine, key="ENGINE_KEY"), "words", 2)
    with pytest.raises(ProviderError, match=r"401.*API key"):
        read(build(name, engine), "words", 2)


@pytest.mark.parametrize("data", [b"<html>", b"[]", b"{}"])
def test_an_answer_that_makes_no_sense_is_malformed(
    name: str, engine: FakeEngine, data: bytes
) -> None:
    engine.change = lambda _: data
    with pytest.raises(ProviderError) as caught:
        read(build(name, engine), "words", 3)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("score", [None, "high", True, [1]])
def test_a_score_that_is_no_number_is_malformed(
    name: str, case: Case, engine: FakeEngine, score: Json
) -> None:
    engine.change = lambda answer: spoil(answer, case, score)
    with pytest.raises(ProviderError, match="no finite number"):
        read(build(name, engine), "words", 3)


def spoil(answer: Json, case: Case, score: Json) -> Json:
    rows = answer
    for key in case.rows:
        rows = rows[key]
    if case.score is None:
        rows[0][1] = score
        return answer
    place = rows[1]
    for key in case.score[:-1]:
        place = place[key]
    place[case.score[-1]] = score
    return answer


INCOMPLETE = [(name, change) for name, case in CASES.items() for change in case.incomplete]


@pytest.mark.parametrize(("name", "change"), INCOMPLETE)
@pytest.mark.parametrize("leg", ["words", ""])
def test_an_incomplete_answer_is_a_failure(name: str, change: str, leg: str) -> None:
    case = CASES[name]
    with serving(case.engine()) as engine:
        engine.change = case.incomplete[change]
        with pytest.raises(ProviderError) as caught:
            read(build(name, engine), leg, case.depth)
    assert caught.value.kind in {"server", "too_large"}


def test_depths_and_fusions_that_the_engine_does_not_have_are_refused(
    name: str, engine: FakeEngine
) -> None:
    connector = build(name, engine, most_documents=50)
    with pytest.raises(ConfigError, match=r"^legs\.words: depth 51 .* 50"):
        connector.check_depth("words", 51)
    connector.check_depth("words", 50)
    assert engine.requests == []
    with pytest.raises(ConfigError, match=r"fused\.fusion: unknown"):
        build(name, engine, fused={"method": "borda"})


def test_a_weight_of_a_leg_that_is_not_there_is_refused() -> None:
    settings: Mapping[str, Any] = CASES["qdrant"].settings
    fused = {"method": "rrf", "weights": {"wordz": 2}}
    with pytest.raises(ConfigError, match=r"^fused\.weights: 'wordz'"):
        connectors.build({**settings, "method": "qdrant", "url": "http://x", "fused": fused})


def write_lines(path: Path, *objects: object) -> str:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in objects), encoding="utf-8")
    return str(path)


# Vespa ranks every hit by every feature, which lists cannot show.
@pytest.mark.parametrize("name", sorted(set(CASES) - {"vespa"}))
def test_the_pulled_experiment_replays_the_engine(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    dense = {"id": "q1", "vector": QUERY.vectors["dense"]}
    words = {"id": "q1", "indices": [0, 1], "values": [1.0, 1.0]}
    vectors = {
        "vector": write_lines(tmp_path / "dense.jsonl", dense),
        "sparse_vector": write_lines(tmp_path / "words.jsonl", words),
    }
    with serving(case.engine()) as engine:
        plain = connectors.build({"method": name, "url": engine.url, **case.settings})
        legs = {
            leg: {**case.settings["legs"][leg], "vectors": vectors.get(settings.query_form)}
            for leg, settings in plain.legs.items()
        }
        connector = connectors.build(
            {"method": name, "url": engine.url, **case.settings, "legs": legs}
        )
        queries = write_lines(tmp_path / "queries.jsonl", {"id": "q1", "text": QUERY.text})
        out = tmp_path / "mine"
        options = PullOptions(out=out, depth=case.depth, texts=True)
        pull_dataset(connector, Path(queries), options)
    (out / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")  # to evaluate, some are needed
    with (out / "dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("qrels: qrels.txt\n")
    dataset = load_dataset(out / "dataset.yaml")
    systems = yaml.safe_load((out / "experiment.yaml").read_text(encoding="utf-8"))["systems"]
    replayed = fusion_bench.fuse(dataset, System("replay", **systems["replay"])).to_dict()["q1"]
    fused = dataset.runs["engine-fused"].to_dict()["q1"]
    assert [*fused] == [*replayed]
    assert len(fused) == case.depth
    export = fusion_bench.export(out / "experiment.yaml", name, name="replay")
    assert (export.fidelity, export.reasons) == ("exact", ())
    pages = [json.loads(line) for line in (out / "documents.jsonl").read_text("utf-8").splitlines()]
    documents = {name for run in dataset.runs.values() for name in run.to_dict()["q1"]}
    texts = {page["id"]: page["text"] for page in pages}
    assert texts == {name: DOCUMENTS[name][0] for name in documents}
