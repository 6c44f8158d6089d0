"""``fusion-bench export``: its files, its page, its JSON and its exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.shipped_schemas import check_record
from tests.tiny import EXPERIMENT

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("root")
TO = ("export", EXPERIMENT, "--to", "elasticsearch")
CUTS = [
    word
    for name in ("one", "two")
    for cut in ("depth=10", "top_k=10")
    for word in ("--set", f"systems.{name}.{cut}")
]


def run_json(capsys: Capture, *words: str, code: int = 0) -> dict[str, Any]:
    assert main([*words, "--json"]) == code
    text = capsys.readouterr().out
    if code == 0:
        check_record("export", text)
    record: dict[str, Any] = json.loads(text)
    return record


def test_through_a_pipe_standard_output_is_the_configuration(capsys: Capture) -> None:
    assert main([*TO, "--system", "one", *CUTS]) == 0
    out, err = capsys.readouterr()
    request = json.loads(out)
    assert request["retriever"]["rrf"]["rank_constant"] == 60
    assert "exact" in err


def test_several_files_have_their_names_above_them(capsys: Capture) -> None:
    assert main(["export", EXPERIMENT, "--to", "vespa", "--system", "one"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("==> ")]) == 2


def test_an_approximate_export_is_replayed(capsys: Capture) -> None:
    record = run_json(capsys, *TO, "--system", "two")
    assert record["fidelity"] == "approximate"
    assert any(reason.startswith("bonus: ") for reason in record["reasons"])
    [replay] = record["replays"]
    assert (replay["dataset"], replay["queries"], replay["split"]) == ("tiny", 3, "test")
    comparison = replay["comparison"]
    assert comparison["measure"] == "RR@10"
    assert comparison["candidate"] == "two in Elasticsearch"
    difference = replay["export_mean"] - replay["system_mean"]
    assert comparison["difference"] == pytest.approx(difference)
    assert comparison["low"] <= comparison["difference"] <= comparison["high"]
    assert replay["changed_sets"] <= replay["changed_queries"] <= replay["queries"]


def test_the_replay_is_what_eval_says_of_the_translated_system(capsys: Capture) -> None:
    record = run_json(capsys, *TO, "--system", "two")
    config = json.dumps(record["config"])
    assert main(["eval", EXPERIMENT, "--no-plots", "--set", f"systems.one={config}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    [row] = [row for row in report["collections"][0]["systems"] if row["name"] == "one"]
    assert record["replays"][0]["export_mean"] == row["measures"]["RR@10"]["mean"]


def test_what_is_exact_is_replayed_when_asked(capsys: Capture) -> None:
    plain = run_json(capsys, *TO, "--system", "one", *CUTS)
    assert plain["fidelity"] == "exact"
    assert plain["replays"] == []
    assert plain["not_replayed"]
    [replay] = run_json(capsys, *TO, "--system", "one", *CUTS, "--replay")["replays"]
    assert replay["changed_queries"] == replay["comparison"]["difference"] == 0
    two = run_json(capsys, *TO, "--system", "two", "--no-replay")
    assert two["replays"] == []


def test_the_page_says_fidelity_reasons_and_cost(root: Path, capsys: Capture) -> None:
    assert main([*TO, "--system", "two", *CUTS, "--out", "out"]) == 0
    page = capsys.readouterr().out
    for part in ("approximate", "! bonus: ", "Cost in ", "all 3 queries keep", "Written: out"):
        assert part in page
    assert json.loads((root / "out/search.json").read_text())


def test_files_that_differ_are_kept_without_force(root: Path, capsys: Capture) -> None:
    words = [*TO, "--system", "one", "--out", "out"]
    assert main(words) == 0
    assert main(words) == 0  # the same text
    (root / "out/search.json").write_text("mine")
    assert main(words) == 2
    assert "--force" in capsys.readouterr().err
    assert (root / "out/search.json").read_text() == "mine"
    assert main([*words, "--force"]) == 0
    assert json.loads((root / "out/search.json").read_text())
    assert sorted(path.name for path in (root / "out").glob("[!.]*")) == ["search.json"]


def test_unsupported_ends_with_2_and_the_reason(root: Path, capsys: Capture) -> None:
    words = [*TO, "--system", "one", "--set", "systems.one.fusion=comb_mnz"]
    assert main([*words, "--out", "out"]) == 2
    assert "like 'comb_mnz'" in capsys.readouterr().err
    assert not (root / "out").exists()
    record = run_json(capsys, *words, code=2)
    assert (record["fidelity"], record["files"], record["config"]) == ("unsupported", {}, None)
    assert record["reasons"]


TYPES = "{by_query_type: {local: 10, hybrid: 60}}"


@pytest.mark.parametrize(
    ("system", "reason"),
    [
        ("{runs: [a, s], stages: {s: {runs: [a, b]}}}", "stages: "),
        ("{runs: [a, b], fusion: pos_fuse}", "'pos_fuse' is "),
        (
            "{runs: [a, b], by_query_type: {hybrid: {fusion: {method: pos_fuse}}}}",
            "'pos_fuse' is ",
        ),
    ],
)
def test_what_no_engine_has_is_unsupported(system: str, reason: str, capsys: Capture) -> None:
    record = run_json(capsys, *TO, "--system", "two", "--set", f"systems.two={system}", code=2)
    assert reason in record["reasons"][0]


def test_the_numbers_of_one_query_type(capsys: Capture) -> None:
    words = [*TO, "--system", "one", *CUTS, "--set", f"systems.one.fusion.k={TYPES}"]
    whole = run_json(capsys, *words)
    assert whole["fidelity"] == "approximate"
    assert whole["config"]["fusion"]["rank_constant"] == 60
    local = run_json(capsys, *words, "--query-type", "local", "--replay")
    assert (local["fidelity"], local["query_type"]) == ("exact", "local")
    assert local["config"]["fusion"]["rank_constant"] == 10
    assert local["replays"][0]["query_type"] == "local"
    assert main([*words, "--query-type", "global"]) == 2
    assert "query type 'global'" in capsys.readouterr().err


def test_the_numbers_of_one_intent(capsys: Capture, root: Path) -> None:
    path = root / "datasets/tiny/queries.jsonl"
    text = path.read_text(encoding="utf-8").replace('"local"', '"local", "intent": "meta"')
    path.write_text(text, encoding="utf-8")
    numbers = "{by_intent: {meta: 10, default: 60}}"
    words = [*TO, "--system", "one", *CUTS, "--set", f"systems.one.fusion.k={numbers}"]
    whole = run_json(capsys, *words)
    assert whole["fidelity"] == "approximate"
    assert whole["config"]["fusion"]["rank_constant"] == 60
    assert "intents: one request " in whole["reasons"][0]
    meta = run_json(capsys, *words, "--intent", "meta", "--replay")
    assert (meta["fidelity"], meta["intent"], meta["query_type"]) == ("exact", "meta", None)
    assert meta["config"]["fusion"]["rank_constant"] == 10
    assert meta["replays"][0]["where"] == {"intent": ["meta"]}
    assert main([*words, "--intent", "rules"]) == 2
    assert "unknown intent 'rules'" in capsys.readouterr().err
    assert main([*words, "--query-type", "local"]) == 2
    assert "query type 'local'" in capsys.readouterr().err


def test_a_run_for_some_queries_is_noted(capsys: Capture, root: Path) -> None:
    tiny.edit(root, tiny.DATASET, "roles: [keyword]", "roles: [keyword], when: {type: [local]}")
    record = run_json(capsys, *TO, "--system", "one")
    assert record["notes"][-1].startswith("a is on where (")


def test_a_window_is_as_long_as_the_longest_list(capsys: Capture) -> None:
    record = run_json(capsys, *TO, "--system", "one", "--set", "systems.one.top_k=2")
    assert (record["fidelity"], record["config"]["depth"]) == ("exact", 2)
    assert "depth: none " in record["reasons"][-1]
    one = run_json(capsys, *TO, "--system", "one", "--set", "systems.one.depth={a: 1}", code=0)
    assert any("instead of a: 1, b: 2" in reason for reason in one["reasons"])
    words = ["--system", "one", "--set", "systems.one.top_k=2", "--set", "dataset=elsewhere"]
    for engine in ("elasticsearch", "opensearch", "manticore"):
        assert main(["export", EXPERIMENT, "--to", engine, *words]) == 2
        assert "--vector b" in capsys.readouterr().err  # without roles, both would search alike
    unknown = run_json(capsys, *TO, *words, "--vector", "b")
    retrievers = json.loads(unknown["files"]["search.json"])["retriever"]["rrf"]["retrievers"]
    assert [next(iter(each["retriever"])) for each in retrievers] == ["standard", "knn"]
    assert not [note for note in unknown["notes"] if "l2_norm" in note]
    assert unknown["fidelity"] == "approximate"
    assert "no dataset " in unknown["reasons"][-1]


def test_without_the_dataset_nothing_is_replayed(capsys: Capture) -> None:
    words = [*TO, "--system", "two", "--set", "dataset=elsewhere"]
    assert main(words) == 2  # weights by role
    assert "question" in capsys.readouterr().err
    record = run_json(capsys, *words, "--set", "systems.two.fusion=rrf", "--vector", "a")
    assert record["replays"] == []
    assert record["not_replayed"].startswith("no dataset ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "elastisearch", "--system", "one"], "did you mean 'elasticsearch'?"),
        (["--to", "elasticsearch", "--system", "three"], "unknown system 'three'"),
        (["--to", "elasticsearch"], "the systems: one, two"),
        (["--to", "elasticsearch", "--system", "one", "--dataset", "no"], "unknown dataset 'no'"),
        (["--to", "elasticsearch", "--system", "one", "--query-type", "x"], "unknown query type"),
        (["--to", "elasticsearch", "--system", "one", "--out", EXPERIMENT], "replace an input"),
        (["--system", "one"], "--to"),
    ],
)
def test_what_is_refused(words: list[str], says: str, capsys: Capture) -> None:
    assert main(["export", EXPERIMENT, *words]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert out == ""


def test_names_cannot_break_out(root: Path, capsys: Capture) -> None:
    name = "a\"\\n}'; DROP TABLE x; -- \\u202e"
    folder = root / "datasets/tiny/dataset.yaml"
    folder.write_text(folder.read_text().replace("  a: {", f"  {json.dumps(name)}: {{"))
    runs = json.dumps([name, "b"])
    for engine in ("elasticsearch", "langchain", "cosmos"):
        words = ["export", EXPERIMENT, "--to", engine, "--system", "one", *CUTS, "--set"]
        assert main([*words, f"systems.one.runs={runs}", "--replay"]) == 0
        assert "exact" in capsys.readouterr().err or engine == "cosmos"
