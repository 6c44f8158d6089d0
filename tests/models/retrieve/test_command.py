"""``fusion-bench retrieve`` from the outside: runs, the dataset's entry, resuming, bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.load_records import load_run
from fusion_bench.models.retrievers.dense import read_vectors
from tests.models.retrieve.collection import DOCUMENTS, PASSAGES, QUERIES, YAML, make, write_lines
from tests.models.retrieve.server import ModelServer, serving, word_vector

Capture = pytest.CaptureFixture[str]
RUNS = Path("datasets/sea/runs")


@pytest.fixture
def yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return path


def ranked(path: Path) -> dict[str, list[str]]:
    lists = load_run(path).to_dict()
    return {query: list(documents) for query, documents in lists.items()}


def cosine_order(texts: dict[str, str]) -> dict[str, list[str]]:
    def unit(text: str) -> Any:  # noqa: ANN401 - an array
        vector = np.array(word_vector(text))
        return vector / np.linalg.norm(vector)

    known = {name: unit(text) for name, text in DOCUMENTS.items()}
    return {
        query: sorted(known, key=lambda name: -float(known[name] @ unit(text)))
        for query, text in texts.items()
    }


def test_a_run_becomes_part_of_the_dataset(yaml: Path, capsys: Capture) -> None:
    assert main(["retrieve", "bm25", "--dataset", "sea"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    written, named = out.splitlines()[-2:]
    assert written == f"Written: {RUNS}/bm25.trec.gz"
    assert named.endswith(": bm25: {path: runs/bm25.trec.gz, roles: [keyword]}")
    dataset = load_dataset(yaml)
    assert dataset.runs["bm25"].roles == {"keyword"}
    lists = ranked(RUNS / "bm25.trec.gz")
    assert lists["q1"][0] in {"d1", "d3"}
    assert lists["q2"][0] == "d2"
    assert "q4" not in lists  # not judged
    assert main(["retrieve", "bm25", "--dataset", "sea"]) == 2
    assert "--replace" in capsys.readouterr().err
    assert main(["retrieve", "bm25", "--dataset", "sea", "--replace", "--unjudged"]) == 0
    assert "1 query found nothing" in capsys.readouterr().out


def test_whitespace_tokens_fill_the_lists_with_zeros(yaml: Path, capsys: Capture) -> None:
    given = ["retrieve", "bm25", "--dataset", "sea", "--tokens", "whitespace", "--json"]
    assert main([*given, "--depth", "4"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["rows"], record["empty"]) == (12, [])
    assert record["settings"]["padding"] is True
    assert record["dataset"] == "datasets/sea/dataset.yaml"
    assert main([*given, "--no-padding", "--name", "bare"]) == 0
    scores = load_run(RUNS / "bare.trec.gz").to_dict()
    assert min(score for documents in scores.values() for score in documents.values()) > 0
    assert yaml.read_text(encoding="utf-8").startswith(YAML)


def test_two_files_are_enough(yaml: Path, capsys: Capture) -> None:
    given = ["retrieve", "bm25", "--documents", "datasets/sea/documents.jsonl"]
    given += ["--queries", "datasets/sea/queries.jsonl", "--split", "test"]
    assert main([*given, "--out", "mine/b.jsonl", "--name", "b"]) == 0
    entry = capsys.readouterr().out.split("in dataset.yaml:\n")[1]
    assert entry == "runs:\n  b: {path: b.jsonl, roles: [keyword]}\n"
    assert set(ranked(Path("mine/b.jsonl"))) == {"q2", "q3"}
    assert yaml.read_text(encoding="utf-8") == YAML


def test_vectors_of_a_server_are_paid_for_once(yaml: Path, capsys: Capture) -> None:
    given = ["retrieve", "dense", "--dataset", "sea", "--encoder", "tei", "--unjudged"]
    with serving(ModelServer()) as state:
        given += ["--set", f"base_url={state.url}", "--save-vectors", "v.npz"]
        assert main(given) == 0
        assert main([*given, "--replace"]) == 0
    out = capsys.readouterr().out
    assert "vectors: 0 stored, 5 computed" in out
    assert "vectors: 5 stored, 0 computed" in out
    assert set(state.paid.values()) == {1}
    assert ranked(RUNS / "dense.trec.gz") == cosine_order(QUERIES)
    # The archive gives the same run, without a server.
    assert main(["retrieve", "dense", "--dataset", "sea", "--vectors", "v.npz", "--name", "v"]) == 0
    assert ranked(RUNS / "v.trec.gz") == cosine_order({q: QUERIES[q] for q in ("q1", "q2", "q3")})
    assert load_dataset(yaml).runs["v"].roles == {"question", "semantic"}


@pytest.mark.usefixtures("yaml")
def test_an_encoder_fills_up_stored_vectors(capsys: Capture) -> None:
    given = ["retrieve", "dense", "--dataset", "sea", "--vectors", "v.npz"]
    rows = {name: np.array(word_vector(text)) for name, text in DOCUMENTS.items() if name != "d3"}
    np.savez("v.npz", doc_ids=np.array([*rows]), doc=np.array([*rows.values()]))
    assert main(given) == 2
    assert "'d3'" in capsys.readouterr().err
    with serving(ModelServer()) as state:
        assert main([*given, "--encoder", "tei", "--set", f"base_url={state.url}"]) == 0
    assert state.paid.keys() == {DOCUMENTS["d3"], *(QUERIES[q] for q in ("q1", "q2", "q3"))}
    expected = cosine_order({q: QUERIES[q] for q in ("q1", "q2", "q3")})
    assert ranked(RUNS / "dense.trec.gz") == expected
    np.savez("v.npz", doc_ids=np.array(["d1"]), doc=np.ones((1, 3)))
    with serving(ModelServer()) as state:
        given += ["--encoder", "tei", "--set", f"base_url={state.url}", "--replace"]
        assert main(given) == 2
    assert "one model" in capsys.readouterr().err


def test_stored_passages_are_searched_with(yaml: Path, capsys: Capture) -> None:
    write_lines(Path("p.jsonl"), ({"id": q, "written": text} for q, text in QUERIES.items()))
    with serving(ModelServer()) as state:
        encoder = ["--encoder", "tei", "--set", f"base_url={state.url}"]
        given = ["retrieve", "hyde", "--dataset", "sea", *encoder]
        assert main(given) == 0
        replayed = ["--passages", "p.jsonl", "--field", "written", "--name", "own"]
        assert main([*given, *replayed]) == 0
        assert main([*given, "--field", "nothing", "--name", "x"]) == 2
    assert "under 'nothing'" in capsys.readouterr().err
    judged = ("q1", "q2", "q3")
    assert ranked(RUNS / "hyde.trec.gz") == cosine_order({q: PASSAGES[q] for q in judged})
    assert ranked(RUNS / "own.trec.gz") == cosine_order({q: QUERIES[q] for q in judged})
    assert load_dataset(yaml).runs["hyde"].roles == {"hyde", "semantic"}


def test_a_language_model_writes_passages(
    yaml: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("HYDE_TEST_KEY", "sk-hyde-0123456789")
    with serving(ModelServer(key="sk-hyde-0123456789")) as state, serving(ModelServer()) as tei:
        given = ["retrieve", "hyde", "--dataset", "sea", "--save-passages", "p.jsonl"]
        given += ["--encoder", "tei", "--set", f"base_url={tei.url}"]
        given += ["--llm", f"base_url={state.url}/v1", "--llm", "key=HYDE_TEST_KEY"]
        state.fail = lambda n: 400 if n else None
        assert main([*given, "--llm", "model=m", "--llm", "concurrency=1"]) == 2
        assert "again to resume" in capsys.readouterr().err
        state.fail = lambda _: None
        assert main([*given, "--llm", "model=m"]) == 0
        assert main(given) == 2
        assert "model: is required" in capsys.readouterr().err
        assert main([*given, "--llm", "model"]) == 2
        assert "KEY=VALUE" in capsys.readouterr().err
        assert main([*given, "--llm", "model=m", "--field", "x"]) == 2
    assert set(state.paid.values()) == {1}
    rows = [json.loads(line) for line in Path("p.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [{"id": q, "hyde": QUERIES[q]} for q in ("q1", "q2", "q3")]
    assert "sk-hyde" not in yaml.read_text(encoding="utf-8")


@pytest.mark.usefixtures("yaml")
def test_semche_is_run_over_a_real_chroma() -> None:
    vectors = {name: np.array(word_vector(text)) for name, text in DOCUMENTS.items()}
    asked = {name: np.array(word_vector(text)) for name, text in QUERIES.items()}
    np.savez(
        "v.npz",
        doc_ids=np.array([*vectors]),
        doc=np.array([*vectors.values()]),
        query_ids=np.array([*asked]),
        query=np.array([*asked.values()]),
    )
    given = ["retrieve", "hybrid", "--dataset", "sea", "--vectors", "v.npz", "--depth", "3"]
    assert main([*given, "--sparse-weight", "0", "--name", "dense"]) == 0
    assert main([*given, "--tokens", "stem", "--no-padding"]) == 0
    expected = cosine_order({q: QUERIES[q] for q in ("q1", "q2", "q3")})
    assert ranked(RUNS / "dense.trec.gz") == {q: order[:3] for q, order in expected.items()}
    scores = load_run(RUNS / "hybrid.trec.gz").to_dict()
    best = max(0.5 / (60 + rank) for rank in (1, 2))
    assert all(best < max(documents.values()) <= 1 / 61 for documents in scores.values())
    assert len(read_vectors(Path("v.npz"))[1]) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["bm25"], "no place for"),
        (["bm25", "--out", "b.trec"], "no 'documents': name"),
        (["bm25", "--dataset", "see"], "unknown dataset 'see'"),
        (["bm25", "--dataset", "sea", "--out", "b.docx"], "unknown file suffix"),
        (["bm25", "--dataset", "sea", "--split", "tset"], "unknown split 'tset'"),
        (["bm25", "--dataset", "sea", "--language", "klingon"], "language 'klingon':"),
        (["bm25", "--dataset", "sea", "--documents", "no.jsonl"], "no.jsonl"),
        (["dense", "--dataset", "sea", "--encoder", "te"], "unknown encoder 'te'"),
        (["dense", "--dataset", "sea", "--encoder", "openai"], "model: is required"),
        (["dense", "--dataset", "sea", "--set", "modle=x"], "unknown key 'modle'"),
        (["dense", "--dataset", "sea", "--vectors", "no.npz"], "no.npz:"),
    ],
)
def test_errors_are_one_line(options: list[str], message: str, yaml: Path, capsys: Capture) -> None:
    assert main(["retrieve", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1
    assert not RUNS.exists()
    assert yaml.read_text(encoding="utf-8") == YAML


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("documents.jsonl", "", "the file"),
        ("documents.jsonl", '{"id": "d1"}\n', "documents.jsonl:1: a document"),
        ("documents.jsonl", '{"id": "d1", "text": ""}\n', "no word"),
        ("queries.jsonl", '{"id": "q1"}\n', "query 'q1'"),
        ("queries.jsonl", '{"id": "Q-1", "text": "x"}\n', "queries is judged"),
        ("queries.jsonl", "id\n", "not JSON"),
        ("qrels.txt", "q1 0 d1 NaN\n", "not a whole number"),
        ("dataset.yaml", f"{YAML}run: {{}}\n", "unknown key 'run'"),
    ],
)
def test_files_that_break_a_rule(
    file: str, text: str, message: str, yaml: Path, capsys: Capture
) -> None:
    (yaml.parent / file).write_text(text, encoding="utf-8")
    assert main(["retrieve", "bm25", "--dataset", "sea"]) == 2
    assert message in capsys.readouterr().err
    assert not RUNS.exists()
