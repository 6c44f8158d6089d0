"""Each "judge these first" prints a command that works where the first command ran."""

import html
import re
import shlex
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.report.data_warnings import SAVED_EXPERIMENT
from tests import unjudged_project as project
from tests.tiny import edit
from tests.unjudged_project import EXPERIMENT

Capture = pytest.CaptureFixture[str]
EVAL = ("eval", EXPERIMENT, "-v", "--out", "out")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.make(tmp_path))
    monkeypatch.setenv("COLUMNS", "2000")  # a command stands on one line
    return tmp_path


def judge_lines(text: str) -> list[str]:
    found = re.findall(r"[Jj]udge these first: fusion-bench judge ([^\n<|(]*)", html.unescape(text))
    return sorted({line.strip() for line in found})


def paste(capsys: Capture, line: str) -> str:
    capsys.readouterr()
    assert main(("judge", *shlex.split(line), "--list")) == 0, line
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_eval(root: Path, capsys: Capture) -> None:
    """Both findings, in each form of the page; the fusion's names the list that contradicts it."""
    assert main(EVAL) == 0
    lines = judge_lines(capsys.readouterr().out)
    assert lines == [
        f"{EXPERIMENT} --baseline pooled --candidate sum --next 50",
        f"{EXPERIMENT} --candidate fresh --next 50",
    ]
    assert judge_lines((root / "out/report.md").read_text()) == lines
    assert set(lines) <= set(judge_lines((root / "out/report.html").read_text()))
    assert "sum - pooled, RR@10" in paste(capsys, lines[0])
    assert "fresh - pooled, RR@10" in paste(capsys, lines[1])


def test_names_no_folder_of_a_machine(root: Path, capsys: Capture) -> None:
    """An absolute path becomes a relative one; a value of --set stays."""
    path = str(root / EXPERIMENT)
    assert main(("eval", path, "--set", "seed=3", "-v", "--out", "out")) == 0
    lines = judge_lines((root / "out/report.md").read_text())
    assert lines[1] == f"{EXPERIMENT} --candidate fresh --next 50 --set seed=3"
    assert "fresh - pooled" in paste(capsys, lines[1])
    for name in ("report.md", "report.html"):
        assert str(root) not in (root / "out" / name).read_text()


def test_fusion_without_a_system_of_the_list(root: Path, capsys: Capture) -> None:
    """No system is the list that contradicts: judge what the fusion returns."""
    edit(root, EXPERIMENT, "pooled: {runs: [pooled]}", "pooled: {runs: [pooled], top_k: 9}")
    assert main(EVAL) == 0
    lines = judge_lines(capsys.readouterr().out)
    assert lines[-1] == f"{EXPERIMENT} --system sum --order pool"
    assert "new0" in paste(capsys, lines[-1])


def test_several_datasets(root: Path, capsys: Capture) -> None:
    """A dataset by the name that its dataset.yaml gives it."""
    text = (root / project.DATASET).read_text().replace("name: mine", "name: second")
    (root / "datasets/mine/second.yaml").write_text(text)
    names = "datasets: [mine, ../datasets/mine/second.yaml]"
    edit(root, EXPERIMENT, "dataset: mine", names)
    assert main(EVAL) == 0
    line = f"{EXPERIMENT} --dataset second --candidate fresh --next 50"
    assert line in judge_lines((root / "out/report.md").read_text())
    assert "fresh - pooled" in paste(capsys, line)


def test_compare(root: Path, capsys: Capture) -> None:
    assert main(EVAL) == 0
    options = ("--baseline", "fresh", "--candidate", "pooled")
    capsys.readouterr()
    assert main(("compare", "out/report.json", "-v", *options)) == 0
    [line] = judge_lines(capsys.readouterr().out)
    assert "pooled - fresh, RR@10" in paste(capsys, line)
    edit(root, EXPERIMENT, "  pooled: {runs: [pooled]}", "  pooled: {runs: [fresh]}")
    assert main((*EVAL[:-1], "new")) == 0
    capsys.readouterr()
    options = ("--baseline", "pooled", "--candidate", "pooled")
    assert main(("compare", "out", "new", "-v", *options)) == 0
    [line] = judge_lines(capsys.readouterr().out)
    assert line == f"{EXPERIMENT} --system pooled --order pool"
    assert "new0" in paste(capsys, line)


@pytest.mark.usefixtures("root")
def test_files_without_an_experiment(capsys: Capture) -> None:
    """The line names the experiment that ``try`` saves."""
    files = ("pooled=datasets/mine/pooled.trec", "fresh=datasets/mine/fresh.trec")
    options = ("--qrels", "datasets/mine/qrels.txt", *files, "--measure", "RR@10")
    assert main(("compare", "-v", *options)) == 0
    [line] = judge_lines(capsys.readouterr().out)
    assert line == f"{SAVED_EXPERIMENT} --baseline pooled --candidate fresh --next 50"
    assert main(("try", *options, "-v", "--save", "mine")) == 0
    [other] = judge_lines(capsys.readouterr().out)
    assert other.startswith(f"{SAVED_EXPERIMENT} ")
    paste(capsys, other)
    assert "fresh - pooled, RR@10" in paste(capsys, line)


def test_tune(root: Path, capsys: Capture) -> None:
    assert main(("tune", EXPERIMENT, "-v", "--out", "out")) == 3
    [line] = judge_lines(capsys.readouterr().out)
    assert judge_lines((root / "out/tuning.md").read_text()) == [line]
    assert "RR@10" in paste(capsys, line)


def test_gate(root: Path, capsys: Capture) -> None:
    assert main(("gate", EXPERIMENT, "--update", "--reason", "first")) == 0
    edit(root, EXPERIMENT, "  pooled: {runs: [pooled]}", "  pooled: {runs: [fresh]}")
    capsys.readouterr()
    junit = ("--junit", "gate.xml", "--markdown", "gate.md")
    assert main(("gate", EXPERIMENT, "-v", *junit)) == 3
    line = f"{EXPERIMENT} --system pooled --order pool"
    assert judge_lines(capsys.readouterr().out) == [line]
    for name in ("gate.xml", "gate.md"):
        assert f"judge {line}" in html.unescape((root / name).read_text())
    assert "new0" in paste(capsys, line)
