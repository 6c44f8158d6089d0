"""``fusion-bench rerank`` from the outside: lists, prices, failures, resuming."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.evaluation_page import cost_table
from tests.child_processes import running_child
from tests.models.rerank.calls import test_chain
from tests.models.rerank.collection import YAML, make, read_written_meta
from tests.models.rerank.server import HangOnce, Loopback, closed_port, plain_score, serving
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]
LIST = Path("datasets/tiny/rerank/rrf-jina.jsonl")
ENVIRONMENT = {**os.environ, "JINA_API_KEY": "k1234567"}


def command(state: Loopback, *options: str) -> list[str]:
    return [
        "rerank", "--dataset", "tiny", "--system", "rrf", "--provider", "jina",
        "--set", f"base_url={state.url}", "--store", "s.sqlite", *options,
    ]  # fmt: skip


def in_child(state: Loopback, *options: str) -> list[str]:
    options = ("--set", "concurrency=1", *options)
    return [sys.executable, "-m", "fusion_bench", *command(state, *options)]


def with_spare(state: Loopback, spare: Loopback, options: str = "") -> list[str]:
    """The command with a TEI server for when the first one fails; no call is repeated."""
    Path("c.yaml").write_text(
        "settings: {retry: {attempts: 1}}\nproviders:\n"
        f"  spare: {{method: tei, {options}base_url: '{spare.url}'}}\n",
        encoding="utf-8",
    )
    config = ("--fallback", "spare", "--config", "c.yaml", "--set", "concurrency=1")
    return command(state, *config)


def count_rows(store: Path, table: str, pattern: str = "%") -> int:
    with sqlite3.connect(store) as db:
        (count,) = db.execute(
            f"SELECT count(*) FROM {table} WHERE value LIKE ?",  # noqa: S608 - our own table
            (pattern,),
        ).fetchone()
    db.close()
    return int(count)


def rows(path: Path = LIST) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_list_is_written_that_the_bench_replays(root: Path, capsys: Capture) -> None:
    with serving(Loopback("jina", key="sk-jina-0123456789")) as state:
        assert main(command(state)) == 0
        out, err = capsys.readouterr()
        assert main(command(state)) == 0  # everything is stored
    capsys.readouterr()
    assert err == ""
    assert "jina/resolved-model: 4" in out
    assert "price not known" in " ".join(out.split())
    assert f"Written: {LIST}\n" in out
    assert "latency per query" in out
    with serving(Loopback("jina", url=state.url)) as other:  # the same scores, another ledger
        given = command(state, "--split", "test", "--out", "y.jsonl")
        assert main(given) == 0
    assert "latency per query" not in capsys.readouterr().out
    assert other.requests == []
    assert set(state.paid.values()) == {1}
    for row in rows():
        query, document = f"text of {row['query']}", f"text of {row['document']}"
        assert row["score"] == plain_score(query, [document])[0]
    dataset = load_dataset(root / YAML)
    assert dataset.degraded("rrf-jina") == ()
    meta = dataset.provenance["rrf-jina"]
    assert (meta.asked, meta.system, meta.depth) == ("jina/resolved-model", "rrf", 50)
    assert meta.providers == {"jina/resolved-model": ("q1", "q2", "q3", "q4")}
    assert (meta.ledger["calls"], meta.ledger["queries_answered"]) == (4, 4)
    assert (meta.ledger["cost"], meta.ledger["searches"]) == (None, 4)
    breaker = {"failures": 5, "open_seconds": 30.0, "half_open_calls": 3}
    assert meta.settings["settings"]["breaker"] == breaker
    experiment = root / "experiments/e.yaml"
    edit(root, "experiments/e.yaml", "reranker: r", "reranker: rrf-jina")
    assert main(["eval", str(experiment), "-v", "--out", "r"]) == 0
    assert "cost and latency" in capsys.readouterr().out
    table = cost_table(read_report(Path("r/report.json")).collections[0])
    assert table is not None
    assert {row.cells[1] for row in table.rows} == {"jina/resolved-model"}


def test_depth_split_and_systems_of_an_experiment(root: Path, capsys: Capture) -> None:
    with serving(Loopback("jina")) as state:
        options = ["--depth", "1", "--split", "test", "--out", "x.jsonl", "--json"]
        options += ["experiments/e.yaml", "--system", "two"]
        assert main(command(state, *options)) == 0
    assert json.loads(capsys.readouterr().out)["list"] == "x.jsonl"
    assert [row["query"] for row in rows(Path("x.jsonl"))] == ["q1", "q2", "q4"]
    assert (root / "x.jsonl.meta.json").exists()


def test_a_dry_run_prints_the_price_and_asks_nobody(root: Path, capsys: Capture) -> None:
    with serving(Loopback("jina")) as state:
        assert main(command(state, "--dry-run")) == 0
        assert "price: not known" in capsys.readouterr().out
        priced = command(state, "--dry-run", "--set", "price.per_million_tokens=1000000")
        assert main([*priced, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert main(priced) == 0
    assert state.requests == []
    assert (found["queries"], found["calls"], found["stored"]) == (4, 4, 0)
    assert found["cost"] == found["usage"]["tokens"] > 0
    assert f"price: about {found['cost']:.4f}" in capsys.readouterr().out
    assert not (root / LIST).exists()


def test_max_cost_stops_and_the_same_command_goes_on(root: Path, capsys: Capture) -> None:
    price = ["--set", "price.per_million_tokens=1000000", "--set", "concurrency=1"]
    with serving(Loopback("jina")) as state:
        assert main(command(state, "--max-cost", "1")) == 2
        assert "price of jina/" in capsys.readouterr().err
        assert main(command(state, "--max-cost", "30", *price)) == 2
        assert "--max-cost" in capsys.readouterr().err
        assert 0 < len(state.requests) < 4
        assert not (root / LIST).exists()
        assert main(command(state, "--max-cost", "1000", *price)) == 0
    assert set(state.paid.values()) == {1}
    meta = read_written_meta(root / LIST)
    assert meta.ledger["cost"] == 5 * sum(state.paid.values())  # both runs together


@pytest.mark.parametrize("dialect", ["jina", "voyage"])
@pytest.mark.usefixtures("root")
def test_a_price_per_1000_searches_counts_requests(capsys: Capture, dialect: str) -> None:
    with serving(Loopback(dialect)) as state:
        given = command(state, "--provider", dialect, "--set", "price.per_1000_searches=20")
        given += ["--set", "key=null"]
        assert main([*given, "--dry-run", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cost"] == pytest.approx(4 * 0.02)
        assert main([*given, "--json"]) == 0
    ledger = json.loads(capsys.readouterr().out)["ledger"]
    assert (ledger["calls"], ledger["searches"]) == (4, 4)
    assert ledger["cost"] == pytest.approx(4 * 0.02)


def test_a_degraded_list_says_so_query_by_query(root: Path, capsys: Capture) -> None:
    with (
        serving(Loopback("jina", fail={0: "503", 1: "429"}.get)) as state,
        serving(Loopback("tei", score=lambda _, d: [0.25] * len(d))) as spare,
    ):
        given = with_spare(state, spare)
        assert main(given) == 4
        out = capsys.readouterr().out
        meta = read_written_meta(root / LIST)
        again = main(given)
    for line in ("tei/resolved-model@abc: 1", "fused order: 1", "degraded: 2"):
        assert line in out
    by_reason = {why.split()[-1]: query for query, why in meta.degraded.items()}
    assert set(by_reason) == {"server", "rate_limit"}
    scored = {row["query"]: row["score"] for row in rows()}
    assert again == 0
    assert len(scored) == 4
    assert meta.providers["tei/resolved-model@abc"] == (by_reason["server"],)
    assert meta.providers["fused order"] == (by_reason["rate_limit"],)
    assert read_written_meta(root / LIST).degraded == {}


def test_providers_of_two_spaces_share_the_unit_scale(root: Path) -> None:
    with (
        serving(Loopback("jina", fail={0: "close"}.get)) as state,
        serving(Loopback("tei", score=lambda _, d: [0.0] * len(d))) as spare,
    ):
        assert main(with_spare(state, spare, "space: logit, ")) == 4
    meta = read_written_meta(root / LIST)
    assert meta.score_space == "unit"
    (degraded,) = meta.degraded
    assert {row["score"] for row in rows() if row["query"] == degraded} == {0.5}


def test_a_production_run_keeps_its_deadline(root: Path, capsys: Capture) -> None:
    Path("c.yaml").write_text("profile: production\n", encoding="utf-8")
    with serving(Loopback("jina", fail={1: "hang"}.get)) as state:
        assert main(command(state, "--config", "c.yaml", "--set", "concurrency=1")) in {2, 4}
    told = "".join(capsys.readouterr())
    assert "timeout" in told
    assert (root / LIST).exists() or "no query was" in told


def test_places_and_systems_that_do_not_fit(root: Path, capsys: Capture) -> None:
    blocked = root / "blocked.jsonl.meta.json"
    blocked.mkdir()  # where the record has to go
    with serving(Loopback("jina")) as state:
        assert main(command(state, "--out", "blocked.jsonl")) == 2
        assert "blocked.jsonl: cannot" in capsys.readouterr().err
        blocked.rmdir()
        assert main(command(state, "--out", "blocked.jsonl")) == 0  # and nothing was lost
    assert set(state.paid.values()) == {1}
    edit(root, "experiments/e.yaml", "  one:\n    runs: [a, b]", "  one:\n    runs: [a, c]")
    with serving(Loopback("jina")) as state:
        options = ("experiments/e.yaml", "--system", "one")
        assert main(command(state, *options)) == 2
    assert "runs.1: unknown run 'c'" in capsys.readouterr().err


def test_queries_without_candidates_or_scores(root: Path, capsys: Capture) -> None:
    edit(root, "datasets/tiny/a.trec", "q3 Q0 d1 1 5 a\n", "")
    with serving(Loopback("jina")) as state:
        assert main(command(state, "--out", "x.jsonl", "--system", "a")) == 0
    assert {row["query"] for row in rows(Path("x.jsonl"))} == {"q1", "q2", "q4"}
    with serving(Loopback("jina", fail=lambda _: "text")) as state:
        assert main(command(state)) == 2
    assert "order after jina/" in capsys.readouterr().err
    assert not (root / LIST).exists()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (["--provider", "no"], "unknown provider 'no'"),
        (["--system", "no"], "unknown system 'no'"),
        (["--split", "no"], "unknown split 'no'"),
        (["--set", "colour=1"], "provider 'jina': colour:"),
        (["--set", "nothing"], "KEY=VALUE"),
        (["--set", "model={"], "--set model={: '{'"),
        (["--set", "model=2026-13-45"], "not a value"),
        (["--set", "batch=0"], "or equal to 1"),
        (["--out", "x.trec"], "rerank list"),
        (["--out", "datasets.jsonl"], "a folder"),
        (["--out", "datasets/tiny/dataset.yaml/x.jsonl"], "name a folder"),
        (["--config", "no.yaml"], "no such file"),
        (["--store", "datasets"], "usable score store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_said_before_anybody_is_asked(
    root: Path, capsys: Capture, change: list[str], problem: str
) -> None:
    (root / "datasets.jsonl").mkdir()
    with serving(Loopback("jina")) as state:
        assert main(command(state, *change)) == 2
    assert problem in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert state.requests == []


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        (YAML, "documents: corpus.jsonl\n", "", "no 'documents'"),
        (YAML, "queries: queries.jsonl\n", "", "query 'q1'"),
        ("datasets/tiny/corpus.jsonl", '"d1"', '"dx"', "document 'd1', a candidate"),
    ],
)
def test_texts_that_are_missing(
    root: Path, capsys: Capture, name: str, old: str, new: str, problem: str
) -> None:
    edit(root, name, old, new)
    with serving(Loopback("jina")) as state:
        assert main(command(state)) == 2
    assert problem in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("chain: [a]\n", "c.yaml:1: chain.0: unknown"),
        ("providers:\n  a: {method: nope}\n", "providers.a: unknown rerank"),
        ("settings: {timeout_ms: 0}\n", "c.yaml:1: settings.timeout"),
        ("settings: {top_k: 5}\n", "c.yaml:1: settings.top_k:"),
        ("settings: {srtict: 1}\n", "settings.srtict: unknown"),
        ("settings: {retry: {on: [server]}}\n", "failure_kinds"),
        ("settings: {retry: {'on': [server]}}\n", "'on' is now"),
        ("settings: {retry: {failure_kinds: [x]}}\n", "settings.retry.failure"),
        ("simulation: {seed: 1}\n", "c.yaml:1: simulation: 'simulation'"),
    ],
)
def test_a_wrong_configuration_is_located(
    root: Path, capsys: Capture, text: str, problem: str
) -> None:
    (root / "c.yaml").write_text(text, encoding="utf-8")
    with serving(Loopback("jina")) as state:
        assert main(command(state, "--config", "c.yaml")) == 2
    assert problem in " ".join(capsys.readouterr().err.split())


def test_without_a_provider(root: Path, capsys: Capture) -> None:
    given = ["rerank", "--dataset", "tiny", "--system", "a"]
    assert main(given) == 2
    assert "--provider (known:" in capsys.readouterr().err
    (root / "c.yaml").write_text("providers: {n: noop}\nchain: [n]\n", encoding="utf-8")
    assert main([*given, "--config", "c.yaml", "--store", "s.sqlite"]) == 0
    first = {"query": "q1", "document": "d2", "score": 2.0}
    assert rows(Path("datasets/tiny/rerank/a-noop.jsonl"))[0] == first


@pytest.mark.usefixtures("root")
def test_a_reranker_of_ones_own(capsys: Capture) -> None:
    given = ["rerank", "--dataset", "tiny", "--system", "a", "--provider", "python"]
    given += ["--store", "s.sqlite", "--set"]
    assert main([*given, f"object={test_chain.__name__}:Words"]) == 0
    assert "overlap/words: 4 queries" in capsys.readouterr().out
    scores = {row["score"] for row in rows(Path("datasets/tiny/rerank/a-python.jsonl"))}
    assert scores == {2 / 3}, "two of three words"
    for wrong, problem in (
        ("no.such:Thing", "'no' is not installed"),
        ("os:system", "no installed distribution"),
        (f"{test_chain.__name__}:Nothing", "has no attribute"),
        (f"{test_chain.__name__}:Counter", "a reranker needs 'identity'"),
        (f"{test_chain.__name__}:plain_score", "TypeError"),
    ):
        assert main([*given, f"object={wrong}"]) == 2
        assert problem in capsys.readouterr().err


def test_a_killed_run_pays_for_nothing_twice(tmp_path: Path) -> None:
    """Killed while the server holds an answer back; what it had sent is not asked for again."""
    make(tmp_path, queries=30)
    hangs = HangOnce(10)
    with serving(Loopback("jina", fail=hangs)) as state:
        given = in_child(state)
        with running_child(given, cwd=tmp_path, env=ENVIRONMENT) as first:
            assert hangs.reached.wait(120)
            first.send_signal(signal.SIGKILL)
            assert first.wait() == -signal.SIGKILL
        paid = dict(state.paid)
        assert len(paid) == 10 * 12
        state.release.set()
        done = subprocess.run(
            given, cwd=tmp_path, env=ENVIRONMENT, check=False, capture_output=True
        )
    assert done.returncode == 0, done.stderr
    assert len(state.paid) == 30 * 12
    assert set(state.paid.values()) == {1}
    assert count_rows(tmp_path / "s.sqlite", "events", '%"call"%') == 30


def test_ctrl_c_keeps_what_was_paid(tmp_path: Path) -> None:
    make(tmp_path, queries=5)
    hangs = HangOnce(2)
    with (
        serving(Loopback("jina", fail=hangs)) as state,
        running_child(
            in_child(state),
            cwd=tmp_path,
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever runs the tests in the background has the signal ignored, and children inherit.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as run,
    ):
        assert hangs.reached.wait(120)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=240)
    assert run.returncode == 130
    assert "Traceback" not in err
    assert count_rows(tmp_path / "s.sqlite", "scores") == 2 * 12


def test_retries_are_counted_and_not_printed(root: Path) -> None:
    """Nobody listens at that port, so that every call is tried again."""
    Path("rerank.yaml").write_text(
        "settings: {retry: {attempts: 2, failure_kinds: [connection], wait_initial: 0.01}}\n"
        f"providers: {{away: {{method: cohere, base_url: '{closed_port()}'}}}}\n"
    )
    options = ["--dataset", "tiny", "--system", "a", "--provider", "away"]
    options += ["--config", "rerank.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "fusion_bench", "rerank", *options],
        cwd=root,
        env=os.environ | {"COHERE_API_KEY": "a-long-key"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "connection" in done.stderr
    assert "retry_scheduled" not in done.stderr
