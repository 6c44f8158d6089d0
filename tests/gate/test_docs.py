"""What the documentation shows works as it stands there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench.cli import main
from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import read_yaml
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.experiment.settings import ANSWER_CHECKS, ENDED_KEYS, GatePolicy
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.util.files import baseline_path
from tests.gate import cases
from tests.git_project import commit_all

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def commands() -> list[str]:
    page = "\n".join(blocks("sh") + blocks("yaml"))
    found = re.findall(
        r"(?:^|run: |entry: \.venv/bin/)(fusion-bench gate experiments[^\n#]*)", page, re.MULTILINE
    )
    return [command.strip() for command in found]


def test_the_policies_are_valid() -> None:
    policies = [yaml.safe_load(block) for block in blocks("yaml")]
    given = [policy["gate"] for policy in policies if "gate" in policy]
    read = [parse_model(GatePolicy, policy) for policy in given]
    assert [policy.system for policy in read] == ["rrf-v2", "rrf-v2"]
    inside = {*ENDED_KEYS, *ANSWER_CHECKS.values()}
    assert set(given[1]) == set(GatePolicy.model_fields) - inside  # every key is shown
    assert given[1]["checks"].keys() > ANSWER_CHECKS.keys()


def test_the_workflow_installs_a_pinned_commit() -> None:
    [workflow] = [text for text in blocks("yaml") if "pip install" in text]
    steps = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    [checkout] = [step["with"] for step in steps if "ref" in step.get("with", {})]
    assert checkout["ref"] == "COMMIT"
    assert [step["run"] for step in steps if "run" in step] == [f"pip install ./{checkout['path']}"]
    assert "COMMIT" in PAGE.replace(workflow, "")


def test_the_commands_run_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(cases.make_project(tmp_path))
    commit_all(tmp_path)
    found = commands()
    assert len(found) == 6
    assert sum("--base HEAD" in command for command in found) == 2
    for command in found:
        assert main(shlex.split(command)[1:]) == 0, command
    assert capsys.readouterr().err == ""


def paths_of(workflow: dict[Any, Any]) -> list[str]:
    return list(workflow[True]["pull_request"]["paths"])  # YAML 1.1 reads `on` as true


def _permissions(workflow: dict[Any, Any]) -> dict[str, str]:
    return dict(workflow["jobs"]["gate"].get("permissions", workflow["permissions"]))


def test_the_workflow_runs_only_where_a_configuration_changed() -> None:
    [shown] = [b for b in blocks("yaml") if "jobs:" in b]
    own = read_yaml(ROOT / ".github" / "workflows" / "gate.yml").data
    assert set(paths_of(yaml.safe_load(shown))) <= set(paths_of(own))
    for workflow in (own, yaml.safe_load(shown)):
        [action] = [
            step
            for step in workflow["jobs"]["gate"]["steps"]
            if step.get("uses") == "./.github/actions/gate"
        ]
        assert action["with"]["experiment"].startswith("experiments/")
        assert _permissions(workflow) == {"contents": "read", "pull-requests": "write"}


def test_the_hook_looks_at_configurations_only() -> None:
    [hook] = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    [shown] = [yaml.safe_load(b) for b in blocks("yaml") if b.startswith("# .pre-commit")]
    assert hook["files"] == shown["repos"][0]["hooks"][0]["files"]
    for path, wanted in {
        "experiments/mine.yaml": True,
        "datasets/mine/qrels.txt": True,
        "reports/baselines/mine.json": True,
        "README.md": False,
        "src/experiments/x.py": False,
    }.items():
        assert bool(re.search(hook["files"], path)) is wanted
    assert hook["pass_filenames"] is False


def test_the_projects_own_baseline_is_of_its_own_experiment() -> None:
    path = ROOT / "experiments" / "default.yaml"
    experiment, _ = read_experiment(path)
    kept = read_baseline(ROOT / baseline_path(path))
    assert kept is not None
    assert experiment.gated_system is not None
    assert kept.system == experiment.gated_system.name
    assert (ROOT / baseline_path(path)).stat().st_size < 2_000_000
