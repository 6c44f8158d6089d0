from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import DataError
from fusion_bench.models.retrievers.dense import cosine_chunks, read_vectors, write_vectors

GOOD: dict[str, Any] = {
    "doc_ids": np.array(["a", "b"]),
    "doc": np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16),
    "query_ids": np.array(["q"]),
    "query": np.array([[0.0, 2.0]], dtype=np.float32),
}


def save(path: Path, **changes: object) -> Path:
    arrays = {name: value for name, value in (GOOD | changes).items() if value is not None}
    np.savez(path, **arrays)
    return path


def test_vectors_are_scaled_to_length_one(tmp_path: Path) -> None:
    stored = read_vectors(save(tmp_path / "v.npz"))
    assert {name: vector.tolist() for name, vector in stored.documents.items()} == {
        "a": pytest.approx([0.6, 0.8], abs=1e-3),
        "b": [0.0, 0.0],
    }
    assert stored.queries["q"].tolist() == [0.0, 1.0]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    documents = {"a": np.array([0.6, 0.8]), "b": np.array([1.0, 0.0])}
    path = write_vectors(tmp_path / "sub/v.npz", documents, {})
    stored = read_vectors(path)
    assert not stored.queries
    for name, vector in documents.items():
        np.testing.assert_allclose(stored.documents[name], vector, atol=1e-7)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"doc": None}, "'doc_ids' alone: 'doc_ids' and 'doc' belong together"),
        ({"query_ids": None}, "'query' alone"),
        (dict.fromkeys(GOOD, None), "no vectors: doc_ids"),
        ({"doc_ids": np.array([1, 2])}, "'doc_ids' of type int64"),
        ({"doc_ids": np.array(["a"])}, r"shape \(2, 2\) for 1 ids"),
        ({"doc_ids": np.array(["a", "a"])}, "'a' stands twice"),
        ({"doc": np.zeros((2, 2), dtype=int)}, "'doc' of type int64"),
        ({"doc": np.zeros(2)}, r"shape \(2,\)"),
        ({"doc": np.array([[1.0, 2.0], [np.nan, 1.0]])}, "vector of 'b' is not finite"),
        ({"query": np.ones((1, 3))}, "vectors of 2 and of 3 numbers"),
        ({"doc_ids": np.array(["a", None], dtype=object)}, "not a NumPy archive"),
    ],
)
def test_what_is_wrong_with_an_archive(
    changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        read_vectors(save(tmp_path / "v.npz", **changes))


@pytest.mark.parametrize("data", [b"", b"text", b"PK\x03\x04 half"])
def test_a_file_that_is_no_archive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "v.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"v\.npz: .* NumPy archive") as error:
        read_vectors(path)
    assert "unsafe" not in str(error.value)


def test_a_missing_file_and_one_of_a_similar_name(tmp_path: Path) -> None:
    save(tmp_path / "vectors.npz")
    with pytest.raises(DataError, match=r"mean 'vectors\.npz'"):
        read_vectors(tmp_path / "vector.npz")


def test_cosines_of_vectors_that_do_not_fit() -> None:
    [row] = cosine_chunks(np.zeros((2, 0)), np.eye(3))
    assert row.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(DataError, match=r"2 numbers .* 3"):
        list(cosine_chunks(np.eye(2), np.eye(3)))
