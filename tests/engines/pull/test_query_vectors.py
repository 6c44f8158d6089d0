"""The vectors of queries: files, functions, encoders, and what breaks a rule."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.engines.connectors._base import build_connector
from fusion_bench.engines.pull_questions import Vectors, find_vectors
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.models.answer_stores import AnswerStore
from tests.engines.pull.cases import MODULE

TEXTS = {"q1": "one", "q2": "two"}


def find(form: str = "vector", default: Path | None = None, **leg: Any) -> Vectors:  # noqa: ANN401 - of a leg
    legs = {"a": {"function": f"{MODULE}:ids", "form": form, **leg}}
    connector = build_connector("python", {"legs": legs})
    return find_vectors(connector, TEXTS, default, AnswerStore())["a"]


def write_lines(folder: Path, *rows: object) -> Path:
    path = folder / "vectors.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_an_archive_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    rows = np.array([[3, 4], [1, 0], [7, 7]], dtype=np.float32)
    np.savez(path, query_ids=np.array(["q1", "q2", "other"]), query=rows)
    assert find(default=path) == {"q1": (3.0, 4.0), "q2": (1.0, 0.0)}
    assert find(vectors=str(path)) == find(default=path)


def test_lines_with_vectors(tmp_path: Path) -> None:
    path = write_lines(tmp_path, {"id": "q1", "vector": [1, 2]}, {"_id": "q2", "vector": [0.5, 0]})
    assert find(default=path) == {"q1": (1.0, 2.0), "q2": (0.5, 0.0)}
    rows = [{"id": q, "indices": [7, 2], "values": [0.5, 1]} for q in TEXTS]
    found = find("sparse_vector", write_lines(tmp_path, *rows))
    assert found == {"q1": {2: 1.0, 7: 0.5}, "q2": {2: 1.0, 7: 0.5}}


def test_functions() -> None:
    assert find(vectors=f"{MODULE}:embed") == {"q1": (98.0,), "q2": (100.0,)}
    assert find(vectors="tests.engines.pull.test_query_vectors:embed_later") == {
        "q1": (1.0,),
        "q2": (2.0,),
    }
    sparse = find("sparse_vector", vectors="tests.engines.pull.test_query_vectors:weigh")
    assert sparse == {"q1": {3: 1.0}, "q2": {3: 1.0}}


async def embed_later(texts: list[str]) -> Any:  # noqa: ANN401 - an array
    return np.arange(1.0, len(texts) + 1)[:, None]


def weigh(texts: list[str]) -> list[dict[int, float]]:
    return [{3: 1.0} for _ in texts]


def too_few(texts: list[str]) -> list[list[float]]:
    return [[1.0] for _ in texts[1:]]


def test_an_encoder_makes_vectors_of_length_one() -> None:
    found = find(encoder="minilm")
    assert np.linalg.norm([*found["q1"]]) == pytest.approx(1)
    with pytest.raises(ConfigError, match=r"a\.encoder: unknown"):
        find(encoder="minilmm")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "q1", "vector": [1]}], "query 'q2': no"),
        ([{"id": q, "vector": [1, "x"]} for q in TEXTS], "finite numbers, given 'x'"),
        ([{"id": q, "vector": []} for q in TEXTS], "0 numbers"),
        ([{"id": "q1", "vector": [1]}] * 2, "vectors.jsonl:2: each"),
        ([{"vector": [1]}], "needs an 'id'"),
        ([{"id": "q1"}], "of them is"),
        ([{"id": "q1", "indices": [1], "values": []}], "of one length"),
        ([{"id": q, "indices": [1], "values": [1]} for q in TEXTS], "list of numbers"),
    ],
)
def test_lines_that_break_a_rule(tmp_path: Path, rows: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        find(default=write_lines(tmp_path, *rows))


@pytest.mark.parametrize(
    ("indices", "message"), [([-1], "a whole number from 0"), (["x"], "a whole number from 0")]
)
def test_dimensions_that_break_a_rule(tmp_path: Path, indices: list[object], message: str) -> None:
    rows = [{"id": q, "indices": indices, "values": [1]} for q in TEXTS]
    with pytest.raises(DataError, match=message):
        find("sparse_vector", write_lines(tmp_path, *rows))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests.engines.pull.test_query_vectors:too_few", "1 vectors for 2 queries"),
        ("tests.engines.pull.functions:ids", "TypeError"),
        ("tests.engines.pull.functions:nothing", "cannot be loaded"),
    ],
)
def test_functions_that_break_a_rule(name: str, message: str) -> None:
    with pytest.raises((ConfigError, DataError), match=message):
        find(vectors=name)
