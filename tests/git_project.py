"""Commits of a project that a test made."""

import subprocess
from pathlib import Path

#: A user, and nothing of the machine's own configuration.
OPTIONS = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")


def run_git(root: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *OPTIONS, *words], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit_all(root: Path, *, forced: tuple[str, ...] = ()) -> str:
    """Commit whatever stands in a folder, which becomes a repository; the commit's name.

    Args:
        root: The folder.
        forced: Files that git ignores, and that are committed all the same.
    """
    if not (root / ".git").exists():
        run_git(root, "init", "--quiet", "--initial-branch=main")
    run_git(root, "add", "--all")
    for name in forced:
        run_git(root, "add", "--force", name)
    run_git(root, "commit", "--quiet", "--allow-empty", "--message=state")
    return run_git(root, "rev-parse", "HEAD")
