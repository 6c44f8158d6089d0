"""The composite action: its steps as a runner runs them, against an API on this machine."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.gate import cases
from tests.gate.cases import EXPERIMENT, renew_baseline
from tests.git_project import commit_all, run_git
from tests.texts import names_in_order
from tests.tiny import edit

ROOT = Path(__file__).parent.parent.parent
ACTION = ROOT / ".github/actions/gate"
STEPS = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
SCRIPTS = [step for step in STEPS if "run" in step]
BOT, TOKEN = "github-actions[bot]", "secret-of-this-test"
COMMENTS = "/repos/me/shop/issues"


class Comments(BaseHTTPRequestHandler):
    """The comments of pull request 7, as GitHub's API has them."""

    comments: ClassVar[list[dict[str, Any]]] = []
    calls: ClassVar[list[tuple[str, str]]] = []
    tokens: ClassVar[set[str | None]] = set()
    status: ClassVar[int] = 200

    def handle_call(self) -> None:
        path, _, query = self.path.partition("?")
        self.calls.append((self.command, path))
        self.tokens.add(self.headers["Authorization"])
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
        answer: object = {}
        if self.command == "GET":
            page = int(query.rpartition("page=")[2])
            answer = self.comments[100 * (page - 1) : 100 * page]
        elif self.command == "POST":
            self.comments.append({"id": len(self.comments), "user": {"login": BOT}, **body})
        else:
            self.comments[int(path.rpartition("/")[2])].update(body)
        data = json.dumps(answer).encode()
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = handle_call  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    Comments.comments, Comments.calls, Comments.tokens, Comments.status = [], [], set(), 200
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    (tmp_path / "page.md").write_text("# the page\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Comments)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield {
        "PATH": os.environ["PATH"],
        "GITHUB_API_URL": f"http://127.0.0.1:{server.server_port}",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": "me/shop",
        "GITHUB_TOKEN": TOKEN,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "99",
    }
    server.shutdown()
    server.server_close()


def post(
    tmp_path: Path, environment: dict[str, str], key: str = "e.yaml"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ACTION / "post_comment.py"), "page.md", "--key", key]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert TOKEN not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def bodies() -> list[str]:
    return [comment["body"] for comment in Comments.comments]


def test_a_comment_is_created_then_replaced(tmp_path: Path, environment: dict[str, str]) -> None:
    assert post(tmp_path, environment).stdout == "comment created\n"
    [first] = bodies()
    assert first.startswith("<!-- fusion-bench gate ")
    assert "\n# the page\n" in first
    assert "https://github.example/me/shop/actions/runs/99" in first
    assert post(tmp_path, environment).stdout == "comment unchanged\n"
    (tmp_path / "page.md").write_text("# another\n")
    assert post(tmp_path, environment).stdout == "comment replaced\n"
    [second] = bodies()
    assert "# another" in second
    assert second.splitlines()[0] == first.splitlines()[0]
    assert Comments.calls[:2] == [
        ("GET", f"{COMMENTS}/7/comments"),
        ("POST", f"{COMMENTS}/7/comments"),
    ]
    assert Comments.calls[-1] == ("PATCH", f"{COMMENTS}/comments/0")
    assert Comments.tokens == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [("https://github.example/a/1", True), ("", False), ("javascript:alert(1)", False)],
)
def test_the_page_is_linked(
    tmp_path: Path, environment: dict[str, str], url: str, *, is_linked: bool
) -> None:
    post(tmp_path, environment | {"PAGE_URL": url})
    [body] = bodies()
    assert (f"]({url}) · [Log of" in body) == is_linked
    assert body.count("](") == 1 + is_linked


def test_the_artifact_is_what_the_gate_wrote() -> None:
    [upload] = [step for step in STEPS if "uses" in step]
    assert upload["with"]["path"] == "${{ inputs.out }}/gate.*"
    assert upload["with"]["name"] == "${{ steps.gate.outputs.artifact }}"
    assert "${{ steps.page.outputs.artifact-url }}" in yaml.safe_dump(SCRIPTS)
    assert STEPS.index(upload) < STEPS.index(SCRIPTS[1])


def test_each_experiment_has_its_own_comment(tmp_path: Path, environment: dict[str, str]) -> None:
    for key in ("a.yaml", "b.yaml", "--> <b>.yaml", "a.yaml"):
        post(tmp_path, environment, key)
    assert len(bodies()) == 3
    assert not any("<b>" in body for body in bodies())


def test_it_is_found_behind_many_others_and_only_if_it_is_ours(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    post(tmp_path, environment)
    [ours] = Comments.comments
    quoted = {"user": {"login": "somebody"}, "body": ours["body"]}
    others = [{"id": i, **quoted} for i in range(100)]
    Comments.comments[:] = [*others, {**ours, "id": 100}, {"id": 101, "user": None, "body": None}]
    (tmp_path / "page.md").write_text("# new\n")
    assert post(tmp_path, environment).stdout == "comment replaced\n"
    assert [i for i, body in enumerate(bodies()) if body and "# new" in body] == [100]


def test_a_long_page_is_cut(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "page.md").write_text("x" * 100_000)
    post(tmp_path, environment)
    assert 60_000 < len(bodies()[0]) < 65_536


@pytest.mark.parametrize(
    ("status", "words"), [(403, "pull-requests: write"), (307, "HTTP 307"), (500, "HTTP 500")]
)
def test_what_cannot_be_posted_is_a_warning(
    tmp_path: Path, environment: dict[str, str], status: int, words: str
) -> None:
    Comments.status = status
    done = post(tmp_path, environment)
    assert done.returncode == 0
    assert done.stdout.startswith("::warning::no comment")
    assert words in done.stdout
    assert len(Comments.calls) == 1  # no redirect is followed


@pytest.mark.parametrize(
    "changed",
    [
        {"GITHUB_TOKEN": None},
        {"GITHUB_EVENT_PATH": "absent.json"},
        {"GITHUB_API_URL": "http://elsewhere.example"},
        {"GITHUB_API_URL": "http://localhost:1@elsewhere.example/"},
        {"GITHUB_API_URL": "http://127.0.0.1:1@elsewhere.example/"},
        {"GITHUB_API_URL": "https://me:password@elsewhere.example"},
        {"GITHUB_API_URL": "http://localhost\\@elsewhere.example"},
        {"GITHUB_API_URL": "file:///etc/passwd"},
        {"GITHUB_EVENT_PATH": "page.md"},
    ],
)
def test_another_environment_is_an_error(
    tmp_path: Path, environment: dict[str, str], changed: dict[str, str | None]
) -> None:
    given = environment | changed
    done = post(tmp_path, {name: value for name, value in given.items() if value is not None})
    assert done.returncode == 2
    assert done.stdout.startswith("::error::no comment")
    assert Comments.calls == []


# ── the action's own steps


GATE = f'exec "{sys.executable}" -m fusion_bench "$@"'


def run_steps(
    root: Path, environment: dict[str, str], script: str = GATE, *, base: str = "", **inputs: str
) -> tuple[int, str]:
    """Run the steps as a runner does; the exit code of the last, and the summary of the job."""
    for name in ("out", "summary"):
        (root / name).write_text("")
    command = root / "fusion-bench"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    runner = environment | {
        "PYTHONPATH": str(ROOT),
        "RUNNER_TEMP": str(root),
        "GITHUB_OUTPUT": str(root / "out"),
        "GITHUB_STEP_SUMMARY": str(root / "summary"),
        "GITHUB_ACTION_PATH": str(ACTION),
        "COMMAND": str(command),
        "EXPERIMENT": EXPERIMENT,
        "ARGUMENTS": "--datasets datasets  --junit gate.xml",
        "OUT": "reports/ci",
        "BASE": base,
        "AUTHOR": BOT,
        **inputs,
    }
    code = 0
    for step in SCRIPTS:
        outputs = dict(line.split("=") for line in (root / "out").read_text().splitlines())
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=root,
            env=runner | {"CODE": outputs.get("exit-code", "")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert TOKEN not in done.stdout + done.stderr
        code = done.returncode
    return code, (root / "summary").read_text()


def test_the_steps_check_comment_and_end_with_the_gates_code(
    root: Path, environment: dict[str, str]
) -> None:
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    code, summary = run_steps(root, environment)
    assert code == 1
    [body] = bodies()
    assert "**regressed: 4 checks" in body
    assert names_in_order(body, "1.0000 → 0.5208", "-0.4792", "-0.0100", "45 worse of 60")
    assert body.count("█│") + body.count("┊│") == 4
    assert summary.strip() in body
    assert (root / "gate.xml").exists()
    assert (root / "reports/ci/gate.json").exists()
    code, summary = run_steps(root, environment, "exit 2")
    assert code == 2
    assert "(exit code 2)" in summary
    assert "(exit code 2)" in bodies()[0]
    assert len(bodies()) == 1


def test_changed_lists_pass_against_the_baseline_that_they_start_from(
    root: Path, environment: dict[str, str]
) -> None:
    path = renew_baseline(root)
    start = commit_all(root)
    run_git(root, "checkout", "--quiet", "-b", "change")
    edit(root, "datasets/mine/a.trec", "q7 Q0 n0 2 0.8 a", "q7 Q0 n0 2 0.81 a")
    commit_all(root)
    run_git(root, "checkout", "--quiet", "main")
    path.write_text(path.read_text().replace("first", "second"))
    later = commit_all(root)
    run_git(root, "checkout", "--quiet", "change")
    assert run_steps(root, environment)[0] == 3
    for base in (start, later):  # the merge base of the later one is the first
        code, summary = run_steps(root, environment, base=base)
        assert code == 0
        assert f"that of {start}" in summary
    path.write_text(f"{path.read_text()}\n")
    code, summary = run_steps(root, environment, base=later)
    assert code == 3
    assert names_in_order(summary, "(mine: runs/a changed)", "blocked")
    assert run_steps(root, environment, base="0" * 40)[0] == 3  # it is nowhere: a warning


@pytest.mark.parametrize(
    "inputs",
    [
        {"EXPERIMENT": "--help"},
        {"EXPERIMENT": "--version"},
        {"EXPERIMENT": "--update"},
        {"ARGUMENTS": "--help"},
    ],
)
def test_an_option_in_place_of_the_experiment_checks_nothing(
    tmp_path: Path, environment: dict[str, str], inputs: dict[str, str]
) -> None:
    code, summary = run_steps(cases.make_project(tmp_path), environment, **inputs)
    assert code == 2
    assert "not checked" in summary


def test_no_input_is_pasted_into_a_script() -> None:
    assert not any("${{" in step["run"] for step in SCRIPTS)
