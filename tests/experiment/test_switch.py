"""RAG_FUSION_V2_ENABLED=false is said wherever a system is resolved, and by what is written."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

import fusion_bench as fb
from fusion_bench.cli import main
from tests import tiny
from tests.attacks.project import BASELINE, EXPERIMENT
from tests.gate.cases import make_project, renew_baseline

SWITCH = "RAG_FUSION_V2_ENABLED"
V2 = "{runs: [a, b], fusion: rrf_v2, blend: {method: position_aware, reranker: r}}"
SAYS = f"{SWITCH} is off: system 'live' runs as version 1"
#: Every command that resolves the systems of an experiment.
COMMANDS = (
    ("eval", EXPERIMENT, "--no-plots"),
    ("lint", EXPERIMENT, "--system", "live"),
    ("explain", EXPERIMENT, "q1", "--system", "live"),
    ("diagnose", EXPERIMENT),
    ("fuse", EXPERIMENT, "--system", "live", "--out", "f.trec"),
    ("export", EXPERIMENT, "--system", "live", "--to", "adr-005"),
    ("tune", EXPERIMENT, "--system", "live", "--trials", "4", "--folds", "2", "--no-plots"),
    ("gate", EXPERIMENT),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose gated system is of version 2, with its baseline."""
    root = make_project(tmp_path_factory.mktemp("made"))
    tiny.edit(root, EXPERIMENT, "{runs: [a]}", V2)
    renew_baseline(root)
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(made, tmp_path, dirs_exist_ok=True))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.usefixtures("project")
def test_every_command_says_once_which_systems_it_changes(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert Path(BASELINE).is_file()
    monkeypatch.setenv(SWITCH, "false")
    assert main(command) in {0, 1, 3}
    assert [message for message in caplog.messages if SWITCH in message] == [SAYS]


@pytest.mark.usefixtures("project")
def test_a_system_that_is_of_version_1_anyway_is_not_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(SWITCH, "false")
    assert main(["lint", EXPERIMENT, "--set", "systems.live={runs: [a]}"]) in {0, 1}
    assert SWITCH not in caplog.text


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_what_is_tuned_under_it_says_so_in_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    command = next(words for words in COMMANDS if words[0] == "tune")
    assert main(command) == 0
    tuned = Path("reports/mine/tuning/tuned.yaml")
    assert SWITCH not in tuned.read_text()
    monkeypatch.setenv(SWITCH, "false")
    assert main((*command, "--out", "off")) == 0
    first = Path("off/tuned.yaml").read_text().partition("\n")[0]
    assert first.startswith(f"# {SWITCH} was off: ")
    monkeypatch.delenv(SWITCH)
    assert main(["lint", "off/tuned.yaml"]) in {0, 1}


@pytest.mark.parametrize(
    ("engine", "file", "comment"),
    [
        ("adr-005", "fusion.ts", "//"),
        ("adr-005", ".env", "#"),
        ("haystack", "pipeline.py", "#"),
        ("vespa", "rank-profile.sd", "#"),
        ("pgvector", "search.sql", "--"),
        ("lucene", "Search.java", "//"),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_is_exported_under_it_says_so_in_its_first_line(
    engine: str, file: str, comment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blend = "systems.live.blend=none" if engine != "adr-005" else "systems.live.top_k=5"
    command = ["export", EXPERIMENT, "--system", "live", "--to", engine, "--set", blend]
    monkeypatch.setenv(SWITCH, "false")
    assert main([*command, "--out", "off"]) == 0
    text = Path("off", file).read_text()
    assert text.startswith(f"{comment} {SAYS}\n"), text[:200]


@pytest.mark.usefixtures("project")
def test_a_format_without_comments_has_it_among_the_notes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SWITCH, "false")
    words = ["export", EXPERIMENT, "--system", "live", "--to", "elasticsearch", "--json"]
    assert main([*words, "--set", "systems.live.blend=none"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["notes"][0] == f"{SAYS}."
    assert all(json.loads(text) for text in report["files"].values())


#: A type of TypeScript behind a name, an argument or a result.
TYPE = re.compile(
    r"(?<=[\w)]): (?:Record<[^=]*?>|\{[^=]*\} \| null|\[string, number\]\[\]|[a-z]+(?:\[\])*)"
    r"(?= =|[,)]| \{)"
)


def run_typescript(folder: Path, expression: str, environment: Mapping[str, str]) -> object:
    """What an expression of the exported file is, in node without the types."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    text = (folder / "fusion.ts").read_text()
    text = TYPE.sub("", re.sub(r"^declare .*\n", "", text, flags=re.MULTILINE))
    text = text.replace("new Map<string, number>", "new Map")
    (folder / "fusion.mjs").write_text(f"{text}\nconsole.log(JSON.stringify({expression}));\n")
    done = subprocess.run(
        [node, "fusion.mjs"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or SWITCH in environment, done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


RUNS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "a": {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}},
    "b": {"q": {"d2": 3.0, "d4": 2.0, "d1": 1.0}},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "method"), [(None, "rrf_v2"), ("true", "rrf_v2"), ("OFF", "rrf"), ("0", "rrf")]
)
@pytest.mark.usefixtures("project")
def test_the_exported_typescript_reads_it(value: str | None, method: str) -> None:
    assert main(["export", EXPERIMENT, "--system", "live", "--to", "adr-005", "--out", "ts"]) == 0
    lists = {name: list(run["q"]) for name, run in RUNS.items()}
    environment = {} if value is None else {SWITCH: value}
    fused = run_typescript(Path("ts"), f"fuse({json.dumps(lists)})", environment)
    roles = {"a": frozenset[str](), "b": frozenset({"question"})}
    runs = [fb.Run.from_dict(run, name=name, roles=roles[name]) for name, run in RUNS.items()]
    expected = fb.fuse(runs, method).to_dict()["q"]
    assert isinstance(fused, list)
    assert dict(fused) == pytest.approx(expected, abs=1e-12)
    assert [name for name, _ in fused] == sorted(expected, key=lambda d: (-expected[d], d))
    share = run_typescript(Path("ts"), "[blend(1, 0.25, 0.75), blend(50, 0.25, 0.75)]", environment)
    assert share == ([0.75, 0.75] if method == "rrf" else pytest.approx([0.375, 0.55]))


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_the_exported_typescript_refuses_another_value() -> None:
    assert main(["export", EXPERIMENT, "--system", "live", "--to", "adr-005", "--out", "ts"]) == 0
    shown = run_typescript(Path("ts"), "fuse({})", {SWITCH: "maybe"})
    assert "given maybe" in str(shown)
