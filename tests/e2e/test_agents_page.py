"""The page for programs: its commands run, and their answers have the keys that it names."""

import contextlib
import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import campaign_project
from tests.commands import leaf_commands, options_of, values_at
from tests.gate import cases
from tests.importers.datasets.collections import make_beir
from tests.judging.grades.judged_project import make_judged_project

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
Capture = pytest.CaptureFixture[str]


def table_rows(heading: str) -> list[list[str]]:
    """Cells of the table whose first heading is this."""
    table = PAGE.partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    return [[cell.strip() for cell in row] for row in rows]


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def find_command(words: list[str]) -> str:
    return next(name for name in (" ".join(words[:2]), words[0]) if name in leaf_commands())


def test_every_command_stands_on_the_page_with_options_that_it_has() -> None:
    spans = [shlex.split(span)[1:] for span in code_spans(PAGE) if span.startswith("fusion-bench ")]
    for words in spans:
        options = {word for word in words if word.startswith("--")}
        command = find_command(words)
        assert options <= options_of(leaf_commands()[command]), words
    assert {find_command(words) for words in spans} == set(leaf_commands())


def test_the_commands_of_the_table_answer_with_the_keys_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(make_judged_project(tmp_path))
    make_beir(tmp_path / "downloads/nfcorpus")
    judgments = tmp_path / "datasets/mine/judgments/ann.csv"
    judgments.parent.mkdir()
    judgments.write_text("query,document,grade,judge,note,time\nq1,d2,0,ann,,\n", encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"id": "a", "text": "one"}', encoding="utf-8")
    no_plots = ["--no-plots"]
    small = ["--trials", "4", "--folds", "0", *no_plots]
    faster = {"eval": no_plots, "try": no_plots, "tune": small}
    for question, command, keys in table_rows("question"):
        words = shlex.split(command.strip("`"))[1:]
        more = faster.get(find_command(words), [])
        assert main([*words, *more, "--json"]) == 0, question
        out, err = capsys.readouterr()
        assert err == "", question
        [line] = out.splitlines() if words[:2] != ["dataset", "schema"] else [out]
        for path in code_spans(keys):
            assert list(values_at(json.loads(line), path)), (question, path)


def test_the_error_that_it_shows_is_what_a_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    root = cases.make_project(tmp_path)
    monkeypatch.chdir(root)
    path = root / cases.EXPERIMENT
    changed = path.read_text(encoding="utf-8").replace("[a]}", "[a], fusion: rff}")
    path.write_text(changed, encoding="utf-8")
    assert main(["eval", cases.EXPERIMENT, "--json"]) == 2
    printed = json.loads(capsys.readouterr().out)["error"]
    [block] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    shown = json.loads(block)["error"]
    assert (printed["file"], printed["line"]) == (shown["file"], shown["line"])
    assert printed["message"].startswith(shown["message"].removesuffix("…"))


LOOP_EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: today
systems:
  today: {runs: [weak, strong], fusion: {method: rrf, weights: {weak: 2.5, strong: 0.5}}}
"""
#: Lines that a loop of the page may have.
MOST_LINES = 40


def run_here(words: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
    """Run a command as a process would, without one."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        code = main(words[1:])
    return subprocess.CompletedProcess(words, code, stream.getvalue(), "")


def test_the_loop_asks_until_a_true_gain_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(campaign_project.make(tmp_path, experiment=LOOP_EXPERIMENT))
    monkeypatch.setattr(subprocess, "run", run_here)
    place = "reports/campaigns/mine"
    declared = ["--asks", "30", "--allow-weak", "--out", place]
    assert main(["campaign", "open", "experiments/e.yaml", *declared]) == 0
    [loop] = re.findall(r"```python\n(import json, random.*?)```", PAGE, re.DOTALL)
    assert len(loop.splitlines()) <= MOST_LINES
    capsys.readouterr()
    exec(loop, {})  # noqa: S102 - the page's own code
    answers = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [word for word, _, _ in answers[:-1]] == ["keep"] * (len(answers) - 1)
    assert answers[-1][0] == "ship"
    assert len(answers) > 1
