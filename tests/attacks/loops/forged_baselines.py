"""Baselines and caches with forged parts, beside a worse list: the gate passes none of them."""

import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.attacks.gate.baseline_tricks import lower_all, stored
from tests.attacks.gate.belief_tricks import AT_HEAD, BY_FILE, BY_NAME, COMPARE, add
from tests.attacks.gate.stored_lists import CACHE, ENVIRONMENT, forge_cache
from tests.attacks.gate.trick import EXPERIMENT_TEXT, OTHER_RUN, lines, max_drop
from tests.attacks.project import GATE, RUN
from tests.attacks.runner import run_here
from tests.attacks.torture import Loop, Tally
from tests.edits import Edit, and_then
from tests.gate import cases
from tests.git_project import commit_all

INPUTS = 12
#: Changes the data of a baseline.
Forgery: TypeAlias = Callable[..., object]


def run_round(seed: int, folder: Path) -> Tally:
    """Twelve forged baselines, and a forged cache: each ends with 1, 2 or 3, and no traceback."""
    rng = random.Random(seed)
    good = make_good(folder / "good")
    for number in range(INPUTS):
        root = Path(shutil.copytree(good, folder / str(number)))
        about = forge_baseline(root, rng)
        outcome = run_here(AT_HEAD if "base" in about else GATE, root)
        assert outcome.code in {1, 2, 3}, (about, outcome)
        assert "Traceback" not in outcome.err, (about, outcome)
        shutil.rmtree(root)
    check_cache(good, rng)
    return Tally(inputs=INPUTS + 1)


def make_good(root: Path) -> Path:
    """The project with its baseline, committed; a policy that compares changed lists."""
    cases.make_project(root, mine=EXPERIMENT_TEXT)
    COMPARE(root)
    cases.renew_baseline(root)
    commit_all(root)
    return root


def forge_baseline(root: Path, rng: random.Random) -> list[str]:
    """Plant the worse list, and forge some parts of the baseline; the names of what was done.

    Where the commit of the change is not named, only values and lists are forged: whoever also
    forges policy or anchor has done all that an update does.
    """
    damage = rng.choice(list(LISTS))
    LISTS[damage](root)
    done = [damage, *rng.choice([["base"], []])]
    known = {**FORGERIES, **(OF_UPDATES if "base" in done else {})}
    for name in rng.sample(list(known), rng.randint(0, 3)):
        done.append(name)
        if name == "tolerance":
            max_drop("0.9")(root)
        stored(partial(known[name], rng=rng))(root)
    return done


def check_cache(root: Path, rng: random.Random) -> None:
    """The better list stands in a cache that git tracks, or of which it cannot be asked."""
    forge_cache(root, (root / OTHER_RUN).read_bytes())
    state = rng.choice(["committed", "added", "no repository"])
    if state == "committed":
        commit_all(root, forced=(CACHE,))
    elif state == "added":
        add(root)
    else:
        shutil.rmtree(root / ".git")
    outcome = run_here(GATE, root, ENVIRONMENT)
    assert outcome.code in {1, 3}, (state, outcome)


def _lower(data: dict[str, Any], rng: random.Random) -> None:
    lower_all(data, rng.choice([0.05, 0.1, 0.25]))


def _lower_anchor(data: dict[str, Any], rng: random.Random) -> None:
    for column in data["anchor"]["collections"][0]["values"].values():
        column[:] = [rng.random() / 4 for _ in column]


def _lower_some(data: dict[str, Any], rng: random.Random) -> None:
    """Values without their means."""
    for column in data["collections"][0]["values"].values():
        for place in rng.sample(range(len(column)), 20):
            column[place] *= rng.random()


def _edit_digest(data: dict[str, Any], rng: random.Random) -> None:
    digests = data["collections"][0]["digests"]
    digests[rng.choice(sorted(digests))] = f"{rng.getrandbits(256):064x}"


def _edit_list(data: dict[str, Any], rng: random.Random) -> None:
    described = data["collections"][0]["lists"]["runs/a"]
    described[rng.choice(["roles", "trials"])] = rng.choice([["graph"], 3, 2])


def _add_update(data: dict[str, Any], rng: random.Random) -> None:
    second = rng.randrange(10, 60)
    later = {**data["history"][-1], "updated_at": f"2030-01-01T00:00:{second}+00:00"}
    data["history"].append(later)


def _drop_query(data: dict[str, Any], rng: random.Random) -> None:
    record = data["collections"][0]
    place = rng.randrange(len(record["queries"]))
    for column in (record["queries"], *record["values"].values()):
        del column[place]


def _loosen(data: dict[str, Any], rng: random.Random) -> None:  # noqa: ARG001 - as the others
    data["policy"]["checks"]["RR@10"]["max_drop"] = 0.9


def _accept(data: dict[str, Any], rng: random.Random) -> None:  # noqa: ARG001
    data["policy"]["unreproduced"] = "accept"


MORE: Final = lines(RUN, lambda rows: [*rows, "q0 Q0 x 9 0.1 a\n"])
LISTS: dict[str, Edit] = {
    "by name": BY_NAME,
    "by file": BY_FILE,
    "a row more": and_then(MORE, BY_NAME),
}
FORGERIES: dict[str, Forgery] = {
    "lower": _lower,
    "anchor": _lower_anchor,
    "some lower": _lower_some,
    "digest": _edit_digest,
    "list": _edit_list,
    "query": _drop_query,
}
OF_UPDATES: dict[str, Forgery] = {"tolerance": _loosen, "accept": _accept, "update": _add_update}
LOOP = Loop("forged baselines", run_round)
