"""The commands of a campaign: exit status, JSON that satisfies its schema, errors in one line."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import campaign_project as project
from tests.shipped_schemas import check_record

Capture = pytest.CaptureFixture[str]
KEEP, SHIP = "runs: [weak]\ndepth: 1\n", "runs: [strong]\n"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.make(tmp_path))
    (tmp_path / "keep.yaml").write_text(KEEP, encoding="utf-8")
    (tmp_path / "ship.yaml").write_text(SHIP, encoding="utf-8")
    return tmp_path


def run(capsys: Capture, *words: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(["campaign", *words]) == code
    return capsys.readouterr().out


def open_here(capsys: Capture, *words: str) -> str:
    return run(capsys, "open", "experiments/e.yaml", "--asks", "20", "--allow-weak", *words)


def test_a_whole_campaign_in_json(capsys: Capture) -> None:
    check_record("campaign-status", open_here(capsys, "--json"))
    kept = run(capsys, "ask", project.CAMPAIGN, "keep.yaml", "--json", code=1)
    check_record("campaign-answer", kept)
    assert json.loads(kept)["answer"] == "keep"
    shipped = run(capsys, "ask", project.CAMPAIGN, "ship.yaml", "--json", "--explain")
    check_record("campaign-answer", shipped)
    assert json.loads(shipped)["tuning"]["lost"] == []
    closed = run(capsys, "ask", project.CAMPAIGN, "--set", "fusion.k=3", "--json", code=3)
    check_record("campaign-answer", closed)
    status = run(capsys, "status", project.CAMPAIGN, "--json")
    check_record("campaign-status", status)
    assert json.loads(status)["ships"] == [2]
    log = json.loads(run(capsys, "log", project.CAMPAIGN, "--json"))
    assert [event["event"] for event in log["events"]] == ["ask", "answer"] * 2
    report = run(capsys, "close", project.CAMPAIGN, "--by", "A. Person", "--json")
    check_record("campaign-report", report)
    stored = Path(project.CAMPAIGN, "report.json").read_text(encoding="utf-8")
    assert json.loads(stored) == json.loads(report)
    assert Path(project.CAMPAIGN, "report.md").exists()


def test_pages_say_the_word_first_and_no_held_out_query(capsys: Capture) -> None:
    assert "20 asks left" in open_here(capsys)
    kept = run(capsys, "ask", project.CAMPAIGN, "keep.yaml", "-v", code=1)
    assert "Ask 1: keep" in kept
    log = run(capsys, "log", project.CAMPAIGN)
    assert "depth=1" in log
    told = kept + log + run(capsys, "status", project.CAMPAIGN, "-v")
    assert not [query for query in project.held_out_queries(Path()) if f"{query} " in told]
    closed = run(capsys, "close", project.CAMPAIGN, "--by", "A. Person")
    assert "A. Person" in closed
    assert all(len(line) <= 120 for line in (told + closed).splitlines())


@pytest.mark.parametrize(("tails", "part"), [("bounded", "proposed"), ("t", "skewed")])
def test_every_page_says_what_the_level_is_worth(tails: str, part: str, capsys: Capture) -> None:
    place = project.CAMPAIGN
    pages = [open_here(capsys, "--tails", tails), run(capsys, "ask", place, "keep.yaml", code=1)]
    pages += [run(capsys, "status", place), run(capsys, "log", place)]
    pages += [run(capsys, "ask", place, "keep.yaml", "--json", code=1)]
    pages += [run(capsys, "log", place, "--json"), run(capsys, "close", place, "--by", "P")]
    assert all(part in page.replace("\n", " ") for page in pages)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["ask", "nowhere", "keep.yaml"], ["nowhere"]),
        (["ask", project.CAMPAIGN], ["--set"]),
        (["ask", project.CAMPAIGN, "experiments/e.yaml"], ["experiments/e.yaml", "'systems'"]),
        (["ask", project.CAMPAIGN, "nowhere.yaml"], ["nowhere.yaml"]),
        (["ask", project.CAMPAIGN, "--set", "fusion.kk=1"], ["kk"]),
        (["ask", project.CAMPAIGN, "--set", "fusion"], ["KEY=VALUE"]),
        (["ask", project.CAMPAIGN, "--set", "k=20"], ["'weak', the baseline", "fusion.k=20"]),
        (
            ["ask", project.CAMPAIGN, "--set", "systems.both.fusion.k=20"],
            ["write --set fusion.k=20, or --set systems.weak.fusion.k=20"],
        ),
        (["ask", project.CAMPAIGN, "--set", "systems={}"], ["--set systems.weak.fusion.k=20"]),
        (["open", "experiments/e.yaml"], ["1,000 asks", "100 held-out groups", "--allow-weak"]),
        (
            ["ask", "http://127.0.0.1:9", "keep.yaml"],
            ["FUSION_BENCH_CAMPAIGN_TOKEN", "campaign serve"],
        ),
        (["close", project.CAMPAIGN, "--by", " "], ["--by"]),
        (["open", "experiments/e.yaml", "--asks", "5", "--ships", "6"], ["--ships"]),
        (["open", "experiments/e.yaml", "--level", "0.7"], ["level", "0.5"]),
        (["open", "experiments/e.yaml", "--held-out", "1.5"], ["held_out", "1.5"]),
        (["open", "experiments/e.yaml", "--dataset", "other"], ["--dataset", "other"]),
    ],
)
def test_wrong_input_is_one_line_and_counts_nothing(
    words: list[str], parts: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUSION_BENCH_CAMPAIGN_TOKEN", raising=False)
    if words[0] != "open":
        open_here(capsys)
    assert main(["campaign", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert all(part in error for part in parts)
    ledger = Path("datasets/made/campaigns.jsonl")
    assert not ledger.exists() or len(ledger.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("text", ["", "[]", "runs: [weak", "a: .nan"])
def test_a_candidate_that_is_no_system_is_refused(text: str, root: Path, capsys: Capture) -> None:
    open_here(capsys)
    (root / "bad.yaml").write_text(text, encoding="utf-8")
    assert main(["campaign", "ask", project.CAMPAIGN, "bad.yaml"]) == 2
    assert "bad.yaml" in capsys.readouterr().err


def test_the_line_of_a_wrong_value_is_named(root: Path, capsys: Capture) -> None:
    open_here(capsys)
    (root / "bad.yaml").write_text("runs: [weak]\nfusion:\n  method: rff\n", encoding="utf-8")
    assert main(["campaign", "ask", project.CAMPAIGN, "bad.yaml"]) == 2
    error = capsys.readouterr().err
    assert "bad.yaml:2: fusion: " in error
    assert main(["campaign", "ask", project.CAMPAIGN, "--set", "fusion.k=none"]) == 2
    assert "--set fusion.k: " in capsys.readouterr().err
