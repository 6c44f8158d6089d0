"""A made corpus, and what the tests of every engine that runs from a package ask of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import fusion_bench
from benchmarks.studies.pulled_engines.corpus import make_corpus
from benchmarks.studies.pulled_engines.indexes import FUSIONS, Settings
from benchmarks.studies.pulled_engines.measure import Pull, PulledFolder
from fusion_bench.cli import main
from fusion_bench.engines.connectors import (
    Connector,
    EngineSession,
    Hit,
    PullQuery,
    check_hits,
    connectors,
)

T = TypeVar("T")

CORPUS: Final = make_corpus(500, 30)
QRELS: Final = "".join(f"{query} 0 doc-{n} 1\n" for n, query in enumerate(CORPUS.queries))
DEPTH: Final = 50
FIRST, TEXT = next(iter(CORPUS.queries.items()))


def pull_of(engine: str, settings: Settings) -> Pull:
    return Pull(engine, settings, CORPUS, QRELS, DEPTH, main)


def check_replays(
    engine: str, settings: Settings, folder: Path, *, fusions: tuple[int, ...] = (0, 1, 2)
) -> PulledFolder:
    """Pull fusions of an engine; its dialect gives the same order but for equal scores."""
    for number in fusions:
        fusion = FUSIONS[engine][number]
        pulled = pull_of(engine, settings).write(fusion, folder / str(number))
        orders = pulled.compare_replay()
        assert orders.different == 0, f"{fusion}: {orders.first}"
        assert orders.same + orders.equal + orders.equal_in_32_bits == len(CORPUS.queries)
        assert orders.score_difference < 1e-5
        export = fusion_bench.export(pulled.experiment, engine, name="replay")
        assert (export.fidelity, export.reasons) == ("exact", ())
    return pulled


def build(engine: str, settings: Mapping[str, Any], **changes: object) -> Connector:
    data = {"method": engine, **settings, **changes}
    return connectors.build({key: value for key, value in data.items() if value is not None})


def ask(connector: Connector, question: Callable[[EngineSession], Awaitable[T]]) -> T:
    async def run() -> T:
        async with connector.connect() as session:
            return await question(session)

    return asyncio.run(run())


def read(
    connector: Connector,
    leg: str,
    depth: int = DEPTH,
    *,
    text: str = TEXT,
    texts: bool = False,
    query: PullQuery | None = None,
) -> tuple[Hit, ...]:
    vector = tuple(CORPUS.query_vectors[0].tolist())
    asked = query or PullQuery(FIRST, text, dict.fromkeys(connector.legs, vector))

    async def question(session: EngineSession) -> tuple[Hit, ...]:
        if leg:
            hits = await session.read_source(leg, asked, depth=depth, texts=texts)
        else:
            hits = await session.read_fused(asked, depth=depth, texts=texts)
        return check_hits(hits, depth)

    return ask(connector, question)


def list_texts(connector: Connector) -> list[Hit]:
    async def question(session: Any) -> list[Hit]:  # noqa: ANN401 - a ListingSession
        page, place = await session.read_documents(None)
        hits = [*page]
        while place is not None and page:
            page, place = await session.read_documents(place)
            hits += page
        return hits

    return ask(connector, question)


def nearest(depth: int) -> list[str]:
    scores = CORPUS.vectors @ CORPUS.query_vectors[0]
    names = [*CORPUS.texts]
    return [names[n] for n in (-scores).argsort(kind="stable")[:depth]]


def check_legs(connector: Connector, words: str, dense: str = "dense") -> None:
    """The legs' lists: nearest vectors, matching texts, scores that fall, texts on request."""
    near = read(connector, dense, 20)
    assert [hit.document for hit in near] == nearest(20)
    hits = read(connector, words, 20, texts=True)
    assert hits
    assert all(set(TEXT.split()) & set(CORPUS.texts[hit.document].split()) for hit in hits)
    assert [hit.text for hit in hits] == [CORPUS.texts[hit.document] for hit in hits]
    for found in (near, hits):
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True)
    assert read(connector, words, text="nothing like it") == ()


def check_fingerprint(connector: Connector) -> Mapping[str, Any]:
    first = ask(connector, lambda session: session.read_fingerprint())
    assert first == ask(connector, lambda session: session.read_fingerprint())
    assert first["documents"] == len(CORPUS.texts)
    return first
