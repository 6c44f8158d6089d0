"""Questions of a pull: one list of one query each, with the vectors of the query."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from fusion_bench.config.models import StrictModel
from fusion_bench.config.plugins import user_code
from fusion_bench.engines.connectors import Connector, PullQuery, SourceSettings, load_object
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.json_objects import read_objects
from fusion_bench.models.answer_stores import AnswerStore
from fusion_bench.models.encoders import encoders
from fusion_bench.models.retrievers.dense import embed_texts, read_query_vectors
from fusion_bench.util.digests import hash_values

#: A vector by numbers, or a sparse one by dimension.
Vector: TypeAlias = "tuple[float, ...] | Mapping[int, float]"
#: Query id → vector.
Vectors: TypeAlias = Mapping[str, Vector]
#: Numbers of a vector.
MOST_NUMBERS = 100_000


def find_vectors(
    connector: Connector,
    texts: Mapping[str, str],
    default: Path | None,
    store: AnswerStore,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Vectors]:
    """The vectors of each source that searches by one.

    Args:
        connector: The engine.
        texts: Query id → text.
        default: The file of ``--vectors``, for sources that name nothing; None = there is none.
        store: Keeps what an encoder answers.
        on_progress: Called with the number of vectors that an encoder made, and of all.

    Raises:
        ConfigError: A source has no vectors, or vectors have no source that searches by them.
        DataError: A vector is missing or breaks a rule.
        ProviderError: An encoder failed.
    """
    sources = connector.legs.items()
    for leg, settings in sources:
        if settings.query_form == "text" and (settings.vectors or settings.encoder):
            key = "vectors" if settings.vectors else "encoder"
            raise ConfigError(f"legs.{leg}.{key}: this leg searches by the text: leave {key!r} out")
    is_used = any(
        settings.query_form != "text" and settings.vectors is None and settings.encoder is None
        for _, settings in sources
    )
    if default is not None and not is_used:
        raise ConfigError(
            f"--vectors {default}: no leg needs them: each searches by the text, or names its own"
        )
    known: dict[str, Vectors] = {}
    vectors: dict[str, Vectors] = {}
    for name, source in connector.legs.items():
        if source.query_form == "text":
            continue
        given = source.vectors or (source.encoder and f"encoder {source.encoder!r}") or default
        if given is None:
            remedy = "" if source.query_form == "sparse_vector" else " or 'encoder'"
            raise ConfigError(
                f"legs.{name}: it searches by a {source.query_form.replace('_', ' ')}, which is "
                f"not given: name a file with --vectors, or give the leg 'vectors'{remedy}"
            )
        origin = str(given)
        if origin not in known:
            known[origin] = _read_vectors(name, source, default, texts, store, on_progress)
        vectors[name] = {
            query: _check_vector(known[origin].get(query), source, f"{origin}: query {query!r}")
            for query in texts
        }
    return vectors


def _read_vectors(
    name: str,
    source: SourceSettings,
    default: Path | None,
    texts: Mapping[str, str],
    store: AnswerStore,
    on_progress: Callable[[int, int], None],
) -> Vectors:
    if source.vectors is None and source.encoder is not None:
        try:
            encoder = encoders.build(source.encoder)
        except ConfigError as error:
            raise ConfigError(f"legs.{name}.encoder: {error}") from None
        rows, _ = embed_texts(encoder, list(texts.values()), "query", store, on_progress)
        return dict(zip(texts, map(tuple, rows.tolist()), strict=True))
    given = source.vectors or str(default)
    module, _, attribute = given.rpartition(":")
    if module and attribute and not Path(given).exists():
        return _call_function(given, texts)
    path = Path(given)
    return read_query_vectors(path) if path.suffix == ".npz" else _read_lines(path)


def _call_function(name: str, texts: Mapping[str, str]) -> Vectors:
    """Call a user's function that makes one vector of each text."""
    function = load_object(name, "vectors")
    with user_code(f"vectors {name!r}: "):
        answer = function(list(texts.values()))
        if inspect.isawaitable(answer):
            answer = asyncio.run(asyncio.wait_for(answer, None))
        plain = [row.tolist() if hasattr(row, "tolist") else row for row in answer]
        rows = [dict(row) if isinstance(row, Mapping) else tuple(row) for row in plain]
    if len(rows) != len(texts):
        raise DataError(f"vectors {name!r}: {len(rows)} vectors for {len(texts)} queries")
    return dict(zip(texts, rows, strict=True))


def _read_lines(path: Path) -> Vectors:
    """Vectors from JSON Lines: ``id`` with ``vector``, or with ``indices`` and ``values``."""
    vectors: dict[str, Vector] = {}
    for where, item in read_objects(path):
        query = item.get("id", item.get("_id"))
        if not isinstance(query, str | int) or query in vectors:
            raise DataError(f"{where}: each line needs an 'id' of its own")
        dense, indices, values = item.get("vector"), item.get("indices"), item.get("values")
        if isinstance(dense, list):
            vectors[str(query)] = tuple(dense)
        elif isinstance(indices, list) and isinstance(values, list) and len(indices) == len(values):
            vectors[str(query)] = dict(zip(indices, values, strict=True))
        else:
            needed = "'vector', or 'indices' and 'values' of one length"
            raise DataError(f"{where}: {needed}: one of them is needed")
    return vectors


def _check_vector(vector: Vector | None, source: SourceSettings, where: str) -> Vector:
    if vector is None:
        raise DataError(f"{where}: no vector: every query needs one")
    is_sparse = source.query_form == "sparse_vector"
    if isinstance(vector, Mapping) != is_sparse:
        wanted = "a sparse vector (dimension → weight)" if is_sparse else "a list of numbers"
        raise DataError(f"{where}: {wanted} is needed")
    if not 0 < len(vector) <= MOST_NUMBERS:
        raise DataError(f"{where}: {len(vector):,} numbers: 1 to {MOST_NUMBERS:,} are allowed")
    if isinstance(vector, Mapping):
        if not all(isinstance(key, int) and key >= 0 for key in vector):
            raise DataError(f"{where}: a dimension is a whole number from 0")
        return {key: _check_number(value, where) for key, value in sorted(vector.items())}
    return tuple(_check_number(value, where) for value in vector)


def _check_number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise DataError(f"{where}: a vector holds finite numbers, given {value!r:.40}")
    return float(value)


#: The list of the engine's own fused answers.
FUSED_LIST: Final = "engine-fused"


@dataclass(frozen=True)
class ListPlan:
    """One list that is pulled.

    Attributes:
        name: Of a source, or :data:`FUSED_LIST`.
        depth: Most hits per query.
        is_fused: Whether it is the engine's own fused answer.
    """

    name: str
    depth: int
    is_fused: bool = False


@dataclass(frozen=True)
class Question:
    """One list of one query.

    Attributes:
        plan: The list.
        query: The query.
        key: Of its answer in the store.
    """

    plan: ListPlan
    query: PullQuery
    key: str


def list_questions(
    plans: Sequence[ListPlan],
    texts: Mapping[str, str],
    vectors: Mapping[str, Vectors],
    *,
    with_texts: bool,
) -> list[Question]:
    """List every question; those of one query stand together.

    Args:
        plans: The lists.
        texts: Query id → text.
        vectors: Source → query id → vector.
        with_texts: Whether the texts of the documents are asked for.
    """
    questions = []
    for name, text in texts.items():
        given = {source: by_query[name] for source, by_query in vectors.items()}
        dense = {source: each for source, each in given.items() if isinstance(each, tuple)}
        sparse = {source: each for source, each in given.items() if isinstance(each, Mapping)}
        query = PullQuery(name, text, dense, sparse)
        questions += [
            Question(plan, query, _hash_question(plan, query, texts=with_texts)) for plan in plans
        ]
    return questions


def _hash_question(plan: ListPlan, query: PullQuery, *, texts: bool) -> str:
    """SHA-256 of what an answer depends on besides the settings and the index."""
    names = sorted({*query.vectors, *query.sparse_vectors})
    sources = [name for name in names if plan.is_fused or name == plan.name]
    numbers = [
        text
        for source in sources
        for text in (
            source,
            repr(query.vectors.get(source)),
            repr(query.sparse_vectors.get(source)),
        )
    ]
    return hash_values(plan.name, plan.depth, int(texts), query.id, query.text, numbers)


def describe_settings(connector: Connector) -> dict[str, Any]:
    """The settings that the lists depend on, as JSON."""
    data: dict[str, Any] = connector.model_dump(
        mode="json", exclude=set(connector.operational), serialize_as_any=True
    )
    fused = connector.fused
    if isinstance(fused, StrictModel):
        data["fused"] = fused.model_dump(mode="json")
    return data
