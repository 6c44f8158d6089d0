"""Plugins: an experiment executes nothing, and a gate only what the committed baseline names."""

import hashlib
import json
import shutil
import sys
from contextlib import chdir
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from fusion_bench.config.plugins import PLUGIN_MODULES
from tests import tiny
from tests.attacks.project import BASELINE, EVAL, EXPERIMENT, GATE, TUNE, UPDATE
from tests.gate.cases import make_project

Capture = pytest.CaptureFixture[str]
#: Leaves a file behind where it is executed.
TRACE = "open('executed', 'w').close()\n"
PLUGIN = """
from fusion_bench.methods.fuse import Fusion

def first_ranks(lists, k=60):
    return {d: -min([*each, d].index(d) + k for each in lists.values())
            for ranked in lists.values() for d in ranked}

def top_grade(grades, ideal):
    return (grades[0] or 0) / ideal[0]

def helper(lists, others, more):
    return lists

class FirstList(Fusion):
    method: str = "first_list"

    def fuse(self, runs):
        return -runs.ranks[0].astype(float)
"""
OPTIONS = ("--plugin", "own.py")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose gated system has a fusion of ``own.py``, which its baseline names."""
    root = make_project(tmp_path_factory.mktemp("planted"))
    tiny.edit(root, EXPERIMENT, "{runs: [a]}", "{runs: [a, b], fusion: first_ranks}")
    (root / "own.py").write_text(PLUGIN)
    with chdir(root):
        assert main([*UPDATE, *OPTIONS]) == 0
    return root


@pytest.fixture
def project(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(planted, tmp_path, dirs_exist_ok=True))
    return tmp_path


def is_executed() -> bool:
    return Path("executed").exists()


def digest() -> str:
    return hashlib.sha256(Path("own.py").read_bytes()).hexdigest()


def test_report_baseline_and_next_steps_name_the_plugin(project: Path, capsys: Capture) -> None:
    tiny.edit(project, EXPERIMENT, "[RR@10]", "[RR@10, top_grade@5]")
    path = list(sys.path)
    assert main([*EVAL, *OPTIONS]) == 0
    assert "--plugin own.py" in capsys.readouterr().out
    origin = f"own.py sha256:{digest()}"
    report = json.loads(Path("reports/mine/report.json").read_text())
    systems = {each["name"]: each for each in report["collections"][0]["systems"]}
    assert systems["live"]["config"]["fusion"] == {
        "method": "first_ranks",
        "k": 60,
        "distribution": origin,
    }
    assert report["settings"]["measure_distributions"] == {"top_grade@5": origin}
    assert json.loads(Path(BASELINE).read_text())["config"]["fusion"]["distribution"] == origin
    assert main([*GATE, *OPTIONS]) == 0
    assert sys.path == path
    assert not PLUGIN_MODULES


def test_a_plugin_is_known_for_one_run(project: Path, capsys: Capture) -> None:
    tiny.edit(project, EXPERIMENT, "first_ranks", "{method: first_ranks, k: 2}")
    assert main([*EVAL, *OPTIONS]) == 0
    assert main([*EVAL]) == 2
    assert "'first_ranks'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fusion: first_ranks", "fusion: own.py"),
        ("fusion: first_ranks", "fusion: 'own:FirstList'"),
        ("fusion: first_ranks", "fusion: './own.py:FirstList'"),
        ("fusion: first_ranks", "fusion: {method: first_ranks, plugin: own.py}"),
        ("dataset: mine", "dataset: mine\nplugins: [own.py]"),
        ("dataset: mine", "dataset: mine\nplugin: own.py"),
        ("[RR@10]", "[RR@10, 'own:top_grade@5']"),
    ],
)
def test_an_experiment_executes_no_file(project: Path, old: str, new: str) -> None:
    Path("own.py").write_text(PLUGIN + TRACE)
    tiny.edit(project, EXPERIMENT, old, new)
    assert main([*EVAL]) == 2
    assert main([*EVAL, "--set", "plugin=own.py"]) == 2
    assert not is_executed()


@pytest.mark.parametrize("change", [TRACE, f"{TRACE}raise SystemExit(0)\n"])
def test_a_changed_plugin_is_refused_before_it_runs(
    change: str, project: Path, capsys: Capture
) -> None:
    before = digest()
    Path("own.py").write_text(PLUGIN + change)
    assert main([*GATE, *OPTIONS]) == 2
    shown = capsys.readouterr().err
    assert before in shown
    assert digest() in shown
    assert not is_executed()
    assert project == Path.cwd()


@pytest.mark.usefixtures("project")
def test_a_plugin_beside_the_named_one_is_refused_before_either_runs(capsys: Capture) -> None:
    Path("other.py").write_text(TRACE)
    assert main([*GATE, *OPTIONS, "--plugin", "other.py"]) == 2
    assert "other.py" in capsys.readouterr().err
    assert not is_executed()


@pytest.mark.usefixtures("project")
def test_without_its_plugin_or_baseline_the_gate_refuses(capsys: Capture) -> None:
    assert main([*GATE]) == 2
    Path(BASELINE).unlink()
    Path("own.py").write_text(PLUGIN + TRACE)
    assert main([*GATE, *OPTIONS]) == 2
    assert "names none" in capsys.readouterr().err
    assert not is_executed()


@pytest.mark.usefixtures("project")
def test_an_update_accepts_a_changed_plugin(capsys: Capture) -> None:
    Path("own.py").write_text(PLUGIN.replace("+ k", "+ k + 1"))
    assert main(["gate", EXPERIMENT, "--update", "--reason", "why", *OPTIONS]) == 0
    assert main([*GATE, *OPTIONS]) == 0
    assert json.loads(Path(BASELINE).read_text())["history"][-1]["config_changes"].keys() == {
        "fusion.distribution"
    }
    assert "own.py" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        "import neighbor\n",
        "from package.neighbor import x\n",
        "import importlib; importlib.import_module('neighbor')\n",
        "import os, sys; sys.path.insert(0, os.getcwd())\nimport neighbor\n",
        "import csv\ndef late(lists):\n    import neighbor\n    return {}\n",
    ],
)
def test_a_neighbor_is_not_imported(
    code: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.syspath_prepend(project)  # as python -m and PYTHONPATH do
    Path("neighbor.py").write_text(TRACE)
    Path("package").mkdir()
    Path("package/neighbor.py").write_text(TRACE)
    Path("package/__init__.py").write_text(TRACE)
    Path("own.py").write_text(code)
    tiny.edit(project, EXPERIMENT, "first_ranks", "late")
    assert main([*EVAL, *OPTIONS]) == 2
    shown = capsys.readouterr().err
    assert "no installed package" in shown
    assert "neighbor" in shown or "package" in shown
    assert not is_executed()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise SystemExit(0)\n", "SystemExit"),
        ("def f(:\n", "SyntaxError"),
        ("def first_ranks(lists):\n    raise SystemExit(0)\n", "SystemExit"),
        ("def first_ranks(lists):\n    return {}\n", "no score"),
        ("def rrf(lists):\n    return {}\n", "'rrf'"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_broken_plugin_ends_in_one_line(code: str, problem: str, capsys: Capture) -> None:
    Path("own.py").write_text(code)
    assert main([*EVAL, *OPTIONS]) == 2
    shown = capsys.readouterr().err
    assert problem in shown
    assert "Traceback" not in shown


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (
            "return -runs.ranks[0]",
            "return 1 / 0 + runs.ranks[0]",
            "own.py:18: a function of --plugin raised ZeroDivisionError",
        ),
        (
            "return -runs.ranks[0].astype(float)",
            "raise SystemExit(0)",
            "own.py:18: a function of --plugin raised SystemExit",
        ),
        ("return {d: -min", "return {d: 1 / 0 * min", "own.py:5: first_ranks: query "),
        ("def helper", "1 / 0\ndef helper", "own.py:11: ZeroDivisionError"),
    ],
)
def test_what_a_plugin_raises_names_its_line(
    old: str, new: str, place: str, capsys: Capture
) -> None:
    tiny.edit(Path(), "own.py", old, new)
    words = [*EVAL, *OPTIONS, "--set", "systems.plain.fusion=first_list"]
    assert main(words) == 2
    shown = capsys.readouterr().err
    assert place in shown
    assert len(shown.splitlines()) == 1
    assert PLUGIN_MODULES == {}


LISTS = ("a=datasets/mine/a.trec", "b=datasets/mine/b.trec")
QRELS = ("--qrels", "datasets/mine/qrels.txt")


@pytest.mark.usefixtures("project")
def test_try_compare_and_methods_take_a_plugin(capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["try", *QRELS, *LISTS, "--no-html", "--json", *OPTIONS]) == 0
    [collection] = json.loads(capsys.readouterr().out)["report"]["collections"]
    assert {"first_ranks", "first_list"} < {system["name"] for system in collection["systems"]}
    assert main(["compare", *QRELS, *LISTS, "--measure", "top_grade", "--json", *OPTIONS]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["measures"] == ["top_grade"]
    assert main(["methods", "first_ranks", "--json", *OPTIONS]) == 0
    [entry] = json.loads(capsys.readouterr().out)["fusion"]
    assert entry["parameters"] == {"k": "60"}
    assert main(["methods", "first_ranks"]) == 2


@pytest.mark.usefixtures("project")
def test_python_takes_a_plugin_by_the_same_rule() -> None:
    report = fb.run_experiment(EXPERIMENT, plugins=["own.py"])
    assert digest() in json.dumps(report.to_dict(), default=str)
    assert fb.gate(EXPERIMENT, plugins=["own.py"]).exit_code == 0
    tiny.edit(Path(), "own.py", "k=60", "k=61")
    Path("own.py").write_text(TRACE + Path("own.py").read_text())
    with pytest.raises(fb.FusionBenchError, match="names no plugin"):
        fb.gate(EXPERIMENT, plugins=["own.py"])
    assert not is_executed()
    fb.gate(EXPERIMENT, plugins=["own.py"], update="a new k")
    assert is_executed()
    assert PLUGIN_MODULES == {}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["own.txt", "no-name.py", "missing.py", "experiments"])
def test_what_is_no_plugin_is_refused(name: str, capsys: Capture) -> None:
    assert main([*EVAL, "--plugin", name]) == 2
    assert name in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_workers_have_no_own_methods(capsys: Capture) -> None:
    search = "tune={system: live, parameters: {fusion.k: {low: 1, high: 9}}}"
    given = [*TUNE[:2], "--set", search]
    assert main([*given, "--trials", "2", "--workers", "2", *OPTIONS]) == 2
    assert "--workers 1" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_fuse_takes_a_plugin_for_run_files() -> None:
    lists = ["a=datasets/mine/a.trec", "b=datasets/mine/b.trec"]
    assert main(["fuse", *lists, "--method", "first_list", "--out", "f.trec", *OPTIONS]) == 0
    assert Path("f.trec").exists()
    assert main(["fuse", *lists, "--method", "own:FirstList", "--out", "g.trec", *OPTIONS]) == 0
    assert Path("f.trec").read_text().split()[2] == Path("g.trec").read_text().split()[2]
