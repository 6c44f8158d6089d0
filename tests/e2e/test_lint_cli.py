"""``fusion-bench lint``: its exit codes, its JSON and its page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.gate.page import build_gate_page
from tests.gate import cases
from tests.tiny import EXPERIMENT, edit

#: What the rules find in the tiny experiment.
FOUND = ["blend-not-monotone", "bonus-dominates", "rerank-swamps-retrieval"]


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 1),  # the blend of system two
        (["--system", "one"], 0),
        (["--system", "one", "--set", "systems.one.fusion={method: rrf, k: 1000}"], 0),  # a note
        (["--system", "three"], 2),
        (["--dataset", "tiny"], 1),
        (["--dataset", "datasets/tiny/dataset.yaml"], 1),
        (["--dataset", "other"], 2),
        (["--set", "dataset=other"], 0),  # rrf_v2 needs roles
        (["--set", "dataset=other", "--set", "systems.two.fusion=rrf"], 1),
        (["--set", "lint.ignore=[nothing]"], 2),
        (["--set", "systems.one.runs=[a, z]"], 2),
    ],
)
def test_exit_codes(options: list[str], code: int) -> None:
    assert main(["lint", EXPERIMENT, *options]) == code


@pytest.mark.usefixtures("root")
def test_json_holds_findings_with_their_witnesses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", EXPERIMENT, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["format"], record["format_version"]) == ("fusion-bench-lint", 2)
    assert record["datasets"] == ["tiny"]
    assert {finding["severity"] for finding in record["findings"]} == {"warning"}
    assert all(finding["witness"]["documents"] for finding in record["findings"])


@pytest.mark.usefixtures("root")
def test_in_brief_each_finding_names_its_rule_and_its_systems(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["lint", EXPERIMENT]) == 1
    page = capsys.readouterr().out
    assert re.findall(r"^(\S+) +warning +two\b", page, re.MULTILINE) == FOUND


@pytest.mark.usefixtures("root")
def test_without_the_dataset_the_page_says_what_was_not_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["lint", EXPERIMENT, "-v", "--set", "dataset=other"])
    page = capsys.readouterr().out
    assert "No dataset " in page
    assert "need roles: two" in page


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    return record


def test_eval_stores_the_findings_and_shows_them_last(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = run_json(capsys, "eval", EXPERIMENT, "--no-plots")
    assert [finding["id"] for finding in record["lint"]] == FOUND
    assert {finding["datasets"][0] for finding in record["lint"]} == {"tiny"}
    markdown = (root / "reports/e/report.md").read_text()
    assert markdown.index("## tiny") < markdown.index("blend-not-monotone")
    main(["eval", EXPERIMENT, "-v"])
    page = capsys.readouterr().out
    assert page.index("Primary measure") < page.index("blend-not-monotone: ")


@pytest.mark.usefixtures("root")
def test_an_ignored_finding_is_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    ignore = ["--set", f"lint.ignore=[{', '.join(FOUND)}]"]
    assert run_json(capsys, "eval", EXPERIMENT, "--no-plots", *ignore)["lint"] == []
    assert run_json(capsys, "lint", EXPERIMENT, *ignore)["findings"] == []


@pytest.mark.usefixtures("root")
def test_an_expected_finding_is_a_note_that_no_page_warns_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["eval", EXPERIMENT, "--no-plots"]) == 0
    assert "! lint: " in capsys.readouterr().out
    expected = ["--set", f"expected_lint=[{', '.join(FOUND)}]"]
    record = run_json(capsys, "eval", EXPERIMENT, "--no-plots", *expected)
    assert [(each["id"], each["severity"]) for each in record["lint"]] == [
        (rule, "note") for rule in FOUND
    ]
    assert main(["eval", EXPERIMENT, "--no-plots", *expected]) == 0
    assert "lint: " not in capsys.readouterr().out
    assert main(["lint", EXPERIMENT, *expected]) == 0


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("command", ["eval", "tune", "gate", "fuse"])
def test_every_command_refuses_to_ignore_what_is_no_rule(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(EXPERIMENT)
    path.write_text(f"{path.read_text()}lint: {{ignore: [rank]}}\n")
    options = ["--system", "one", "--out", "f.trec"] if command == "fuse" else []
    assert main([command, EXPERIMENT, *options]) == 2
    assert "rule 'rank'" in capsys.readouterr().err


@pytest.mark.usefixtures("root")
def test_try_stores_the_findings(capsys: pytest.CaptureFixture[str]) -> None:
    folder = "datasets/tiny"
    lists = [f"a={folder}/a.trec", f"b={folder}/b.trec"]
    words = ["try", "--qrels", f"{folder}/qrels.txt", *lists, "--no-plots"]
    assert run_json(capsys, *words)["report"]["lint"] == []
    with_reranker = [*words, "--rerank", f"r:unit={folder}/r.trec"]
    found = run_json(capsys, *with_reranker)["report"]["lint"]
    assert all(finding["severity"] in {"warning", "note"} for finding in found)


@pytest.mark.usefixtures("root")
def test_tune_looks_at_the_default_and_the_tuned_system(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = ["--trials", "2", "--folds", "0", "--no-plots", "--system", "two"]
    found = run_json(capsys, "tune", EXPERIMENT, *small, *KEEP_SPLIT)["lint"]
    assert "two" in {name for finding in found for name in finding["systems"]}


def test_the_gate_looks_at_the_gated_system_and_passes_all_the_same(tmp_path: Path) -> None:
    root = cases.make_project(tmp_path)
    blend = "blend: {method: linear, reranker: r, beta: 0.7, missing: below}"
    edit(root, cases.EXPERIMENT, "live: {runs: [a]}", f"live: {{runs: [a, b], {blend}}}")
    cases.renew_baseline(root)
    verdict = cases.gate_verdict(root)
    assert verdict.exit_code == 0
    assert [(f.id, f.systems) for f in verdict.lint] == [("rerank-swamps-retrieval", ("live",))]
    texts = [f.text for section in build_gate_page(verdict).sections for f in section.findings]
    assert any("rerank-swamps-retrieval: " in text for text in texts)


#: Tune on the queries of one type of split, so that the few queries suffice.
KEEP_SPLIT = ["--set", "tune={system: two, front: {method: none}}"]
