"""Options that name a file to write are given files of the project, under any of their names."""

import os
import random
import shutil
from pathlib import Path

from tests.attacks.project import BASELINE, make_project
from tests.attacks.runner import read_files, run_here
from tests.attacks.torture import Loop, Tally
from tests.output_commands import FILES

CALLS = 12
#: A file of nobody, which only --force replaces.
FOREIGN = "notes.txt"


def run_round(seed: int, folder: Path) -> Tally:
    """A dozen calls: none changes a file that it did not write, but a foreign one where forced."""
    rng = random.Random(seed)
    root = make_project(folder / "project")
    (root / FOREIGN).write_text("notes\n", encoding="utf-8")
    first = read_files(root)
    for _ in range(CALLS):
        words, option = rng.choice([(words, case[1]) for case, words in FILES.items()])
        target, force = rng.choice(sorted(first)), rng.choice(("", "--force"))
        arguments = (*words.split(), option, _spell(root, target, rng), *force.split())
        outcome = run_here(arguments, root)
        is_input = target in words or (target == BASELINE and words.startswith("gate"))
        is_free = bool(force) and not is_input and not target.startswith("datasets/")
        now = read_files(root)
        changed = {name for name, data in first.items() if now.get(name) != data}
        assert changed <= ({target} if is_free else set()), (changed, arguments, outcome)
        assert "Traceback" not in outcome.err, (arguments, outcome)
        if not is_free:
            assert outcome.code == 2, (arguments, outcome)
            assert outcome.err.count("\n") == 1, (arguments, outcome)
        for name in changed:
            (root / name).write_bytes(first[name])
    return Tally(inputs=CALLS)


def _spell(root: Path, target: str, rng: random.Random) -> str:
    """One of the names of a file; links are made anew."""
    linked = root / "linked"
    shutil.rmtree(linked, ignore_errors=True)
    linked.mkdir()
    (linked / "folder").symlink_to((root / target).parent)
    (linked / "file").symlink_to(root / target)
    return rng.choice(
        (
            target,
            f"./{target}",
            f"datasets/../{target}",
            str(root / target),
            f"linked/folder/{Path(target).name}",
            os.path.relpath(linked / "file", root),
        )
    )


LOOP = Loop("outputs onto inputs", run_round, test_rounds=2)
