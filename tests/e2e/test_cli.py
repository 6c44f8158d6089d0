"""Every command, as a user runs it."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application import progress
from fusion_bench.cli.application.progress import end_lines, progress_bar, progress_lines
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.outputs import RECORD
from fusion_bench.util.formatting import escape_control_chars
from tests.child_processes import drop_progress
from tests.commands import leaf_commands, next_commands
from tests.evaluation.test_run_experiment import second
from tests.tiny import DATASET, EXPERIMENT, edit

BIN = [sys.executable, "-m", "fusion_bench"]
COMMANDS = [["dataset"], *map(str.split, leaf_commands())]
A, B, QRELS = (f"datasets/tiny/{name}" for name in ("a.trec", "b.trec", "qrels.txt"))
Capture = pytest.CaptureFixture[str]


def printed(capsys: Capture, *arguments: str) -> str:
    """What a command prints that has nothing to complain about."""
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


# ── help


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_an_example(command: list[str], capsys: Capture) -> None:
    out = printed(capsys, *command, "--help")
    assert "Examples:" in out
    assert f"  fusion-bench {command[0]}" in out
    assert printed(capsys, *command, "-h") == out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        *[(words, "") for words in (["--nope"], ["evil"], ["eval", "--nope"])],
        (["eval", EXPERIMENT, "more"], ""),
        (["compare", "--qrels", QRELS, A, B, "--baseline", "a"], ""),
        (["compare", "--qrels", QRELS, A, B, "--candidate", "a"], ""),
        (["compare", "a.json", "--measure", "RR"], ""),
        (["compare", "a.json", "--binary-relevance", "2"], ""),
        (["compare", "a.json", "b.json", "c.json"], ""),
        (["compare", "--qrels", QRELS, A, B, "--binary-relevance", "0"], ""),
        (
            ["evl"],
            "'eval'? (known: try, eval,",
        ),
        (["\x1b[31mevl"], "'\\x1b[31mevl' (known: try,"),
        (["dataset", "shwo"], "'shwo'. Did you mean"),
        (["eval", "--splt", "dev"], "such option: --splt ("),
        (["dataset", "show"], "argument 'NAME' (see "),
        (["compare"], "argument 'NAME=FILE' (see "),
        (["explain"], "argument 'EXPERIMENT' (see "),
        (["rerank"], "option '--dataset' (see "),
        (["explain", "e", "q", "--top", "x"], "value for '--top': "),
    ],
)
def test_a_misused_command_is_exit_code_2_and_says_what_was_meant(
    arguments: list[str], says: str, root: Path, capsys: Capture
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("error: ")
    assert err.endswith(" --help)\n")
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert main([*arguments, "--json"]) == 2
    out, no_error = capsys.readouterr()
    assert (no_error, escape_control_chars(json.loads(out)["error"]["message"])) == ("", err[7:-1])
    assert not (root / "reports").exists()


@pytest.mark.parametrize(
    ("arguments", "heading"), [([], "Choose, tune, guard:"), (["dataset"], "Commands:")]
)
def test_without_a_command_help_is_shown(
    arguments: list[str], heading: str, capsys: Capture
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert heading in out + err


# ── dataset, methods


def test_dataset_list(root: Path, capsys: Capture) -> None:
    assert re.search(r"^tiny +2 +1$", printed(capsys, "dataset", "list"), re.MULTILINE)
    edit(root, DATASET, "name: tiny\n", "name: tiny\ndescription: small\n")
    assert printed(capsys, "dataset", "list").endswith("small\n")
    found = json.loads(printed(capsys, "dataset", "list", "--json"))
    assert found["tiny"]["runs"]["a"]["roles"] == ["keyword"]
    out = printed(capsys, "dataset", "list", "--datasets", "none", "--datasets", "nowhere")
    assert "none, nowhere: " in out


def test_dataset_check(root: Path, capsys: Capture) -> None:
    path = "datasets/tiny/dataset.yaml"
    first, *_, last = printed(capsys, "dataset", "check", "tiny").splitlines()
    assert first.startswith(f"{path}: no errors: 4 judged ")
    assert last == f"Open {path}"
    whole = printed(capsys, "dataset", "check", "tiny", "-v")
    assert "splits: dev: 1, test: 3" in " ".join(whole.split())
    [note] = json.loads(printed(capsys, "dataset", "check", "tiny", "--json"))["notes"]
    assert note.startswith("3 of 4 queries ")
    file = root / "datasets/tiny/groups.jsonl"
    made = json.loads(
        printed(capsys, "dataset", "check", "tiny", "--json", "--write-groups", str(file))
    )
    assert made["groups_written"] == {"file": str(file), "groups": 1, "queries": 3}
    edit(root, DATASET, "name: tiny\n", "name: tiny\ngroups: groups.jsonl\n")
    facts = json.loads(printed(capsys, "dataset", "check", "tiny", "--json"))
    assert (facts["file"], facts["notes"], facts["groups"]) == (path, [], 2)
    assert facts["unjudged_share_in_top_10"]["b"] == pytest.approx(2 / 6)
    edit(root, A, "q3 Q0 d1 1 5 a\n", "")
    [note] = json.loads(printed(capsys, "dataset", "check", "tiny", "--json"))["notes"]
    assert (note.split()[0], "1 judged query" in note) == ("a", True)
    out = printed(capsys, "dataset", "check", "tiny")
    assert "\n! a has " in out
    assert "1 note" in out.splitlines()[0]


# ── eval


def test_eval_keeps_what_it_reads_unless_told_not_to(
    root: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUSION_BENCH_CACHE", str(root / "kept"))
    results = []
    for option in ("--no-cache", "--cache", "--cache"):
        printed(capsys, "eval", EXPERIMENT, "--no-plots", option)
        results.append(read_report(root / "reports/e/report.json").collections)
        assert (root / "kept").exists() is (option == "--cache")
    assert results[0] == results[1] == results[2]


def test_eval_writes_what_the_api_computes(root: Path, capsys: Capture) -> None:
    out = printed(capsys, "eval", EXPERIMENT, "--plots", "-v")
    folder = root / "reports/e"
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    texts = {"report.json", "report.md", "report.html"}
    assert texts < names
    assert all(name.endswith(".png") for name in names - texts)
    for name in names:
        assert str(Path("reports/e") / name) in out
    written = read_report(folder / "report.json")
    experiment, source = read_experiment(Path(EXPERIMENT))
    computed = run_experiment(experiment, source, folders=[root / "datasets"])
    assert written.collections == computed.collections
    assert written.settings == computed.settings
    assert "one" in (folder / "report.md").read_text(encoding="utf-8")
    assert "\x1b[" not in out


def test_eval_json_is_the_report(root: Path, capsys: Capture) -> None:
    out = printed(capsys, "eval", EXPERIMENT, "--json", "--no-plots", "--no-html", "--out", "here")
    assert json.loads(out) == json.loads((root / "here/report.json").read_text(encoding="utf-8"))
    names = {path.name for path in (root / "here").iterdir()}
    assert names == {"report.json", "report.md", ".gitignore", RECORD}
    assert not (root / "reports").exists()


def evaluated(capsys: Capture, *options: str) -> list[dict[str, Any]]:
    out = printed(capsys, "eval", EXPERIMENT, "--json", "--no-plots", *options)
    return list(json.loads(out)["collections"])


@pytest.mark.parametrize(
    ("options", "queries"),
    [
        ([], ["q1", "q2", "q4"]),
        (["--split", "dev"], ["q3"]),
        (["--split", "all"], ["q1", "q2", "q3", "q4"]),
        (["--query-type", "local"], ["q1", "q4"]),
        (["--split", "all", "--query-type", "relationship"], ["q3"]),
    ],
)
@pytest.mark.usefixtures("root")
def test_eval_on_some_of_the_queries(
    options: list[str], queries: list[str], capsys: Capture
) -> None:
    assert [c["queries"] for c in evaluated(capsys, *options)] == [queries]


def test_eval_on_two_datasets(root: Path, capsys: Capture) -> None:
    second(root)
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, other]")
    assert [c["name"] for c in evaluated(capsys)] == ["tiny", "other"]
    out = printed(capsys, "eval", EXPERIMENT)
    assert out.index("\ntiny 1, split test: 3 ") < out.index("\nother 1, split test: 3 ")


def test_datasets_are_found_beside_the_experiment_and_by_option(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    options = ["eval", f"../{EXPERIMENT}", "--no-plots", "--json"]
    assert json.loads(printed(capsys, *options))["collections"][0]["name"] == "tiny"
    assert main([*options, "--datasets", "."]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert ", .: unknown dataset 'tiny' " in error["message"]


@pytest.mark.usefixtures("root")
def test_the_switch_is_seen_in_the_file_and_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("RAG_FUSION_V2_ENABLED", "false")
    out = printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "off")
    assert "V2_ENABLED is off" in out
    off = read_report(Path("off/report.json"))
    config = off.collections[0].system("two").config or {}
    assert (config["fusion"]["method"], config["blend"]["method"]) == ("rrf", "replace")
    assert off.provenance.v2_enabled is False
    for value in ("true", "1", "", "YES"):
        monkeypatch.setenv("RAG_FUSION_V2_ENABLED", value)
        out = printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "on")
        assert "RAG_FUSION_V2_ENABLED" not in out
    config = read_report(Path("on/report.json")).collections[0].system("two").config or {}
    assert (config["fusion"]["method"], config["blend"]["method"]) == ("rrf_v2", "position_aware")


def test_ctrl_c_while_the_command_line_is_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fusion_bench.cli.application.app.app", interrupted)
    assert main(["methods"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[ONNX]: std::bad_alloc")])
def test_too_little_memory_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("fusion_bench.evaluation.run_experiment.run_experiment", too_large)
    assert main(["eval", EXPERIMENT]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: not enough ")
    assert err.count("\n") == 1


def test_an_experiment_named_by_dots_stays_in_its_folder(root: Path, capsys: Capture) -> None:
    (root / EXPERIMENT).rename(root / "experiments/...yaml")
    printed(capsys, "eval", "experiments/...yaml", "--no-plots")
    assert (root / "reports/experiment/report.json").is_file()
    assert not (root / "report.json").exists()


# ── compare


@pytest.mark.usefixtures("root")
def test_compare_takes_names_of_run_files(capsys: Capture) -> None:
    arguments = ["compare", "--qrels", QRELS, f"today={A}", B, "--json"]
    found = json.loads(printed(capsys, *arguments))["collections"][0]
    assert found["baseline"] == "today"
    assert [row["name"] for row in found["systems"][:2]] == ["today", "b"]
    assert main(["compare", "--qrels", QRELS, A, f"a={B}"]) == 2
    message = capsys.readouterr().err
    assert f"'a' appears twice, for {A} and {B}: " in message
    assert main(["compare", "x=report.json"]) == 2
    assert "cannot be named" in capsys.readouterr().err


def test_compare_of_reports_explains_what_lost_most(root: Path, capsys: Capture) -> None:
    printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "before")
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "after")
    files = ["before/report.json", "after/report.json", "--candidate", "one"]
    commands = next_commands(printed(capsys, "compare", *files))
    assert commands[0] == ["explain", EXPERIMENT, "q1", "--system", "one"]
    assert commands[1][-2:] == ["--markdown", "comparison.md"]
    assert [main(command) for command in commands] == [0, 0]
    assert (root / "comparison.md").is_file()


def test_compare_one_report_and_two(root: Path, capsys: Capture) -> None:
    edit(root, EXPERIMENT, "baseline: one", "baseline: one\nalpha: 0.1")
    printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "before")
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    printed(capsys, "eval", EXPERIMENT, "--no-plots", "--out", "after")
    out = printed(capsys, "compare", "before/report.json", "-v")
    assert "tiny: 3 queries, " in out
    assert "90 % interval" in out
    assert "hold together for 1" in out
    two = ["compare", "before/report.json", "after/report.json", "--candidate", "one"]
    assert "one (second)" in printed(capsys, *two)
    [found] = json.loads(printed(capsys, *two, "--json"))
    assert (found["collection"], found["queries"]) == ("tiny", 3)
    assert found["comparisons"][0]["difference"] == pytest.approx(-0.5)
    assert found["comparisons"][1]["answer"] is None


def strict(text: str) -> object:
    """JSON as every program reads it: Python's own NaN is refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


# ── summaries, next commands and formats of plots


def test_a_summary_goes_to_a_file_or_to_standard_output(root: Path, capsys: Capture) -> None:
    single = ["eval", EXPERIMENT, "--no-plots", "--out", "out"]
    summary = printed(capsys, *single, "--markdown", "-")
    assert len(summary.splitlines()) <= 40
    assert summary.splitlines()[2].startswith("**")
    assert "Written" not in summary
    out = printed(capsys, *single, "--markdown", "deep/summary.md", "--json")
    assert json.loads(out)["name"] == "e"
    assert (root / "deep/summary.md").read_text(encoding="utf-8").startswith("# e\n")
    compared = ["compare", "out/report.json", "--markdown", "-"]
    lines = printed(capsys, *compared).splitlines()
    assert (lines[0], lines[2][:2]) == ("# Comparison", "**")
    assert lines[-1].startswith("*out/report.json: ")


def test_a_summary_that_cannot_be_written(root: Path, capsys: Capture) -> None:
    (root / "taken").mkdir()
    (root / "file").touch()
    for name, words in {
        "taken": "--markdown taken: a folder, ",
        "": "--markdown .: a folder, ",
        "file/s.md": "cannot be written",
    }.items():
        assert main(["eval", EXPERIMENT, "--no-plots", "--markdown", name]) == 2
        assert words in capsys.readouterr().err


def test_eval_offers_the_gate_as_it_stands(root: Path, capsys: Capture) -> None:
    """Before there is a baseline, the command that writes one."""
    (root / EXPERIMENT).write_text(
        (root / EXPERIMENT).read_text() + "gate: {system: two, checks: {RR@10: {max_drop: 0.1}}}\n"
    )
    for options in (["--update", "--reason", "first baseline"], []):
        command = next_commands(printed(capsys, "eval", EXPERIMENT))[-1]
        assert command == ["gate", EXPERIMENT, *options]
        printed(capsys, *command)


@pytest.mark.slow
def test_plots_as_svg(root: Path, capsys: Capture) -> None:
    printed(capsys, "eval", EXPERIMENT, "--plots", "--plot-format", "svg", "--out", "out")
    names = {path.suffix for path in (root / "out").iterdir() if not path.name.startswith(".")}
    assert names == {".json", ".md", ".html", ".svg"}
    text = (root / "out/report.md").read_text(encoding="utf-8")
    assert "(tiny-RR-10-forest.svg)" in text


# ── processes, pipes and terminals

#: Unbuffered output would hide what is written, or not, when a process ends.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def process(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BIN, *arguments],
        cwd=cwd,
        env={**BUFFERED, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
def test_an_output_that_is_not_unicode_gets_replacements(root: Path) -> None:
    done = process("methods", cwd=root, PYTHONIOENCODING="ascii")
    assert (done.returncode, drop_progress(done.stderr)) == (0, "")
    assert "? w/(k + rank)" in done.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback_and_no_regression(root: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*BIN, "methods"],
        cwd=root,
        env=BUFFERED,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert drop_progress(done.stderr) == ""
    assert done.returncode == 141


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["methods"], ["methods", "--json"], ["evl", "--json"]])
def test_a_full_disk_is_one_line(arguments: list[str], root: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no device that is always full")
    with full.open("w") as sink:
        done = subprocess.run(
            [*BIN, *arguments],
            cwd=root,
            env=BUFFERED,
            stdout=sink,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    error = drop_progress(done.stderr)
    assert error.count("\n") == 1
    start = '{"error": ' if "--json" in arguments else "error: standard output: "
    assert error.startswith(start)


def loaded(*arguments: str, cwd: Path) -> set[str]:
    code = (
        "import sys; from fusion_bench.cli import main; code = main(sys.argv[1:]);"
        "print(*sorted(sys.modules), file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.slow
def test_help_imports_nothing_heavy(root: Path) -> None:
    found = loaded("--help", cwd=root)
    assert not found & {"numpy", "pydantic", "rich", "yaml", "pandas", "optuna", "httpx", "pyarrow"}
    parts = {name.split(".")[1] for name in found if name.startswith("fusion_bench.")}
    assert parts == {"cli", "config", "errors", "util"}  # nothing else: `make bench` times it


@pytest.mark.slow
def test_eval_imports_only_what_it_needs(root: Path) -> None:
    heavy = {"optuna", "pandas", "scipy.stats", "ir_measures", "pyarrow"}
    options = ["eval", EXPERIMENT, "--out", "out"]
    modules = loaded(*options, "--no-plots", cwd=root)
    assert not modules & (heavy | {"matplotlib"})


# ── progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def drawn(monkeypatch: pytest.MonkeyPatch, capsys: Capture, *, after: float) -> str:
    """What a terminal gets from work that takes this many seconds."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    with progress_bar() as show:
        show("reading tiny", 0, 1)
        clock.now += after
        show("aligning tiny", 1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_progress_shows_on_a_terminal_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    shown = drawn(monkeypatch, capsys, after=2.1)
    assert "aligning tiny, 1 of 2" in shown
    assert "reading tiny" not in shown
    assert "tiny" not in drawn(monkeypatch, capsys, after=1.9)


def read_lines(capsys: Capture, wanted: str) -> list[str]:
    """Progress lines, as soon as one of them is wanted; at most a minute's."""
    printed: list[str] = []
    until = time.monotonic() + 60
    while not any(re.fullmatch(wanted, line) for line in printed):
        assert time.monotonic() < until, printed
        time.sleep(0.01)
        out, err = capsys.readouterr()
        assert out == ""
        printed += err.splitlines()
    return printed


def test_a_pipe_gets_lines_with_the_stage(capsys: Capture) -> None:
    with progress_lines("tune", 0.02), progress_bar() as show:
        read_lines(capsys, r"progress: tune, \d+ s")
        show("reading tiny", 0, 1)
        read_lines(capsys, r"progress: reading tiny, \d+ s")
        show("aligning tiny\x1b", 3, 12)
        read_lines(capsys, r"progress: aligning tiny\\x1b, 3 of 12, \d+ s")


def test_lines_end_with_the_work_and_a_terminal_gets_none(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    with progress_lines("tune", 0.001):
        read_lines(capsys, r"progress: tune, \d+ s")
    until = time.monotonic() + 60
    while "progress lines" in running_threads():
        assert time.monotonic() < until
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_lines("tune", 0.001):
        assert "progress lines" not in running_threads()


def test_a_command_that_waits_ends_its_lines(capsys: Capture) -> None:
    with progress_lines("serve", 0.001):
        read_lines(capsys, r"progress: serve, \d+ s")
        end_lines()
        for thread in threading.enumerate():
            if thread.name == "progress lines":
                thread.join(60)
        assert "progress lines" not in running_threads()


def running_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def test_the_version(capsys: Capture) -> None:
    assert printed(capsys, "--version").startswith("fusion-bench 0.")
