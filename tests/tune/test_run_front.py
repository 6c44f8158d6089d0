"""From a paid reranker to the front: its ledger prices every depth, and wrong names are refused."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.io.dataset import load_dataset
from fusion_bench.tune import pareto as front
from tests.models.rerank.server import Loopback, serving

QUERIES, DEPTH, BATCH = 24, 6, 4
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: today
systems:
  today:
    runs: [good]
    blend: {{method: linear, reranker: {reranker}, beta: 0.5, missing: below}}
tune:
  system: today
  trials: 4
  folds: 0
  sampler: random
  front: {{trials: 8}}
  {more}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "datasets" / "made"
    folder.mkdir(parents=True)
    (tmp_path / "experiments").mkdir()
    rows = [(q, d) for q in range(QUERIES) for d in range(DEPTH)]
    files = {
        "dataset.yaml": "name: made\nqrels: qrels.txt\nqueries: q.jsonl\ndocuments: d.jsonl\n"
        "runs:\n  good: {path: good.trec, roles: [question]}\n",
        "qrels.txt": "".join(f"q{q} 0 d{d} {int(d == q % DEPTH)}\n" for q, d in rows),
        "good.trec": "".join(f"q{q} Q0 d{d} 1 {DEPTH - d} x\n" for q, d in rows),
        "q.jsonl": "".join(json.dumps({"id": f"q{q}", "text": f"q{q}"}) + "\n" for q, _ in rows),
        "d.jsonl": "".join(
            json.dumps({"id": f"d{d}", "text": f"text {d}"}) + "\n" for d in range(DEPTH)
        ),
    }
    files["q.jsonl"] = "".join(dict.fromkeys(files["q.jsonl"].splitlines(keepends=True)))
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tmp_path


def scored(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Score the list on a real server, four documents a call; the dataset names it then."""
    folder = root / "datasets" / "made"
    with serving(Loopback("cohere")) as state:
        given = ["rerank", "--dataset", "made", "--system", "good", "--provider", "cohere"]
        for each in (f"base_url={state.url}", f"batch={BATCH}", "price.per_1000_searches=2"):
            given += ["--set", each]
        store = ["--store", str(root / "store.sqlite"), "--datasets", str(root / "datasets")]
        assert main([*given, *store, "--out", str(folder / "paid.jsonl")]) == 0
    capsys.readouterr()
    return "paid"


def tune(root: Path, reranker: str, more: str = "") -> int:
    path = root / "experiments" / "e.yaml"
    path.write_text(EXPERIMENT.format(reranker=reranker, more=more), encoding="utf-8")
    where = ["--datasets", str(root / "datasets"), "--out", str(root / "out")]
    return main(["tune", str(path), *where, "--no-plots", "--json"])


def test_the_ledger_of_a_real_run_prices_the_front(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "a-secret-key")
    name = scored(root, capsys)
    ledger = load_dataset(root / "datasets/made/dataset.yaml").provenance[name].ledger
    assert ledger["largest_call"] == BATCH
    assert tune(root, name, "effort: {price: 9}") == 0
    tuned = json.loads(capsys.readouterr().out)
    report = tuned["front"]
    (source,) = report["efforts"]
    assert (source["cost"], source["seconds"]) == ("ledger", "ledger")
    assert (source["calls"], source["declared_price"]) == (2 * QUERIES, 9.0)
    points = {point["depth"]: point for point in report["points"]}
    assert points[0]["cost"] == 0.0
    assert points[3]["cost"] == pytest.approx(2.0), "one search unit a query"
    assert points[5]["cost"] == pytest.approx(4.0), "a second call, billed whole"
    assert 0 < points[3]["seconds"] <= points[5]["seconds"] < points[5]["slow"] + 1e-12
    page = (root / "out" / "tuning.md").read_text(encoding="utf-8")
    assert "used: ledger" in page
    assert "declared 9, in" in page

    again = ["eval", str(root / "out" / "front.yaml"), "--datasets", str(root / "datasets")]
    assert main([*again, "--no-plots", "--json", "--out", str(root / "again")]) == 0
    found = json.loads(capsys.readouterr().out)["collections"][0]
    rows = {row["name"]: row["measures"]["nDCG@10"] for row in found["systems"]}
    held_out = [found["queries"].index(query) for query in tuned["held_out_queries"]]
    for point in report["points"]:
        if point["efficient"] and point["depth"]:
            values = rows[f"today, depth {point['depth']}"]["values"]
            mean = sum(values[q] for q in held_out) / len(held_out)
            assert mean == pytest.approx(point["held_out"])


def unpaid(root: Path) -> None:
    """A rerank list without a record."""
    folder = root / "datasets" / "made"
    rows = [f"q{q} Q0 d{d} 1 0.{d} x\n" for q in range(QUERIES) for d in range(DEPTH)]
    (folder / "paid.trec").write_text("".join(rows), encoding="utf-8")
    with (folder / "dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("rerank:\n  paid: {path: paid.trec, score_space: unit}\n")


def test_ctrl_c_in_the_front_keeps_what_was_found_and_a_second_run_goes_on(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    unpaid(root)

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(front, "search_all_depths", stopped)
        assert tune(root, "paid") == 130
    cut = json.loads(capsys.readouterr().out)
    assert cut["interrupted"]
    assert cut["front"]["interrupted"]
    assert cut["front"]["points"]
    assert tune(root, "paid") == 0
    whole = json.loads(capsys.readouterr().out)
    assert not whole["interrupted"]
    assert whole["trials"] == cut["trials"]
    assert whole["front"]["evaluations"] == cut["front"]["evaluations"] + 8


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "effort: {rerankers: {other: {price: 1}}}",
            "tune.effort.rerankers: unknown reranker 'other' (known: paid)",
        ),
        (
            "parameters: {blend.reranker: {choices: [paid, other]}}",
            "tune.parameters.blend.reranker: unknown reranker 'other'",
        ),
        ("front: {method: magic}", "tune.front.method: "),
    ],
)
def test_what_is_not_there_is_named_with_its_place(
    root: Path, capsys: pytest.CaptureFixture[str], more: str, said: str
) -> None:
    unpaid(root)
    text = EXPERIMENT.replace("  front: {{trials: 8}}\n", "") if "front" in more else EXPERIMENT
    path = root / "experiments" / "e.yaml"
    path.write_text(text.format(reranker="paid", more=more), encoding="utf-8")
    assert main(["tune", str(path), "--datasets", str(root / "datasets"), "--no-plots"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
