"""Tricks with what the gate would have to believe: values, repeats, caches, ledgers, commits."""

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from fusion_bench.gate.baseline_files import candidates_path
from tests.attacks.gate.baseline_tricks import lower_all, stored
from tests.attacks.gate.stored_lists import CACHE, ENVIRONMENT, forge_cache
from tests.attacks.gate.trick import OTHER_RUN, SEALED, Trick, copied, lines, max_drop, policy
from tests.attacks.project import BASELINE, DATASET, EXPERIMENT, GATE, RUN
from tests.attacks.runner import run_here
from tests.edits import Edit, and_then, gone, link, nothing, replaced, text
from tests.gate import cases
from tests.git_project import commit_all, run_git

LEDGER: Final = str(candidates_path(Path(BASELINE)))
#: The gated system reads the worse list; or the worse list stands in the better one's file.
BY_NAME: Final = replaced(EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
BY_FILE: Final = copied(OTHER_RUN, RUN)
#: A policy that compares changed lists, and whose golden query the worse list answers, too.
COMPARE: Final = and_then(
    policy("lists: refuse", "lists: compare"),
    policy("query: q3, document: d3", "query: q0, document: d0"),
    policy("slices: [local]", "slices: []"),
)
#: The same without what blocks a noisy candidate.
WARN: Final = and_then(
    COMPARE,
    policy("[{measure: RR@10, max_loss", "[] #"),
    policy("  lists:", "  inconclusive: warn\n  lists:"),
)
BUDGET: Final = policy("  lists:", "  candidates: {max: 2}\n  lists:")
UNPROVED: Final = ("baseline not reproduced (mine: runs/a changed): blocked",)
TO_HEAD: Final = ("--base", "HEAD")
AT_HEAD: Final = (*GATE, *TO_HEAD)


def accepted(*changes: Edit, then: Edit = BY_NAME) -> Edit:
    """The better list, accepted anew after changes of the project; then the worse one."""

    def spoil(root: Path) -> None:
        replaced(EXPERIMENT, "live: {runs: [b]}", "live: {runs: [a]}")(root)
        and_then(*changes)(root)
        (root / BASELINE).unlink()
        cases.renew_baseline(root)
        then(root)

    return spoil


def commit(root: Path) -> None:
    commit_all(root, forced=(CACHE,) if (root / CACHE).exists() else ())


def add(root: Path) -> None:
    run_git(root, "add", "--force", CACHE)


def _lower_everything(data: dict[str, Any]) -> None:
    """Lower values in baseline and anchor, in all parts that have to agree."""
    lower_all(data, 0.05)
    for name, column in data["collections"][0]["values"].items():
        data["anchor"]["collections"][0]["values"][name] = column


def _lower_as_update(data: dict[str, Any]) -> None:
    """The same as an update that follows the accepted one."""
    accepted_one = copy.deepcopy(data["history"][-1])
    _lower_everything(data)
    newest = {**data["history"][-1], "updated_at": "2030-01-01T00:00:00+00:00"}
    data["history"] = [accepted_one, newest]


LOWER: Final = stored(_lower_everything)
AS_UPDATE: Final = stored(_lower_as_update)


def forge(change: Callable[[dict[str, Any]], object]) -> Edit:
    """Lower values in the baseline, and another change of it, with a new checksum."""
    return and_then(LOWER, stored(change))


def repeats(name: str, *contents: str) -> Edit:
    """A list of several files: ``good``, ``worse``, or ``row`` with one row."""

    def spoil(root: Path) -> None:
        folder = root / "datasets/mine"
        texts = {
            "good": cases.run_lines(dict.fromkeys(range(cases.QUERIES), 1), name),
            "worse": (root / OTHER_RUN).read_text(encoding="utf-8"),
            "row": "q0 Q0 d0 1 1.0 x\n",
        }
        for path in folder.glob(f"{name}-*.trec"):
            path.unlink()
        for number, content in enumerate(contents):
            (folder / f"{name}-{number}.trec").write_text(texts[content], encoding="utf-8")
        spec = root / DATASET
        one, several = f"{name}: {{path: {name}.trec", f"{name}: {{path: '{name}-*.trec'"
        spec.write_text(spec.read_text(encoding="utf-8").replace(one, several), encoding="utf-8")

    return spoil


def cached(then: Edit, place: str = CACHE) -> Edit:
    """A forged cache of the better list, and what is done afterwards."""

    def forged(root: Path) -> None:
        commit_all(root)
        forge_cache(root, (root / OTHER_RUN).read_bytes(), root / place)
        then(root)

    return accepted(COMPARE, then=forged)


def linked_cache(root: Path) -> None:
    """The folder of the cache as a link into the repository."""
    (root / CACHE).rename(root / "kept")
    (root / CACHE).symlink_to("../../kept")
    commit_all(root)


def bare_repository(folder: str) -> Edit:
    """What git takes for a repository of its own, with a folder as all its contents."""

    def spoil(root: Path) -> None:
        other = root / "other"
        shutil.copytree(root / folder, other)
        commit_all(other)
        for name in ("HEAD", "config", "objects", "refs"):
            shutil.move(other / ".git" / name, root / folder / name)
        shutil.rmtree(other)
        run_git(root / folder, "config", "--file", "config", "core.bare", "true")

    return spoil


def other_repository(root: Path) -> None:
    """An empty repository elsewhere, which a variable of the environment names."""
    commit(root)
    commit_all(cases.make_project(root / "other"))


def tried(*runs: str, then: Edit = nothing) -> Edit:
    """Candidates that were checked, and what is done afterwards."""

    def spoil(root: Path) -> None:
        for run in runs:
            replaced(EXPERIMENT, "live: {runs: [a]}", f"live: {run}")(root)
            assert run_here(GATE, root).code == 1
            replaced(EXPERIMENT, f"live: {run}", "live: {runs: [a]}")(root)
        then(root)
        replaced(EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b], depth: 2}")(root)

    return accepted(BUDGET, then=spoil)


TWO: Final = ("{runs: [b]}", "{runs: [b], depth: 3}")


def _older(root: Path) -> None:
    """The better list accepted after the worse one, and committed; then the older baseline."""
    (root / BASELINE).unlink()
    old = cases.renew_baseline(root).read_bytes()
    replaced(EXPERIMENT, "live: {runs: [b]}", "live: {runs: [a]}")(root)
    cases.renew_baseline(root, "better", anchor=True)
    commit(root)
    (root / BASELINE).write_bytes(old)
    BY_NAME(root)


def _written_anew(root: Path) -> None:
    """The baseline removed, and written for the worse list."""
    commit(root)
    (root / BASELINE).unlink()
    cases.renew_baseline(root, "again")


def _other_ledger(root: Path) -> None:
    """That of the same project with another list."""
    other = Path(shutil.copytree(root, root / "other"))
    (other / LEDGER).unlink()
    (other / BASELINE).unlink()
    BY_NAME(other)
    cases.renew_baseline(other)
    shutil.copyfile(other / LEDGER, root / LEDGER)
    shutil.rmtree(other)


def unproved(name: str, edit: Edit, *arguments: str) -> Trick:
    """A trick after which nobody can compute the baseline's values again."""
    return Trick(name, edit, code=3, says=UNPROVED, arguments=(*GATE, *arguments))


def compared(*then: Edit) -> Edit:
    """Lists are compared; what is done once the better one is accepted."""
    return accepted(COMPARE, then=and_then(*then))


def from_cache(name: str, edit: Edit, **environment: str) -> Trick:
    """A trick with a cache: the lists themselves are read."""
    variables = {**ENVIRONMENT, **environment}
    return Trick(name, edit, code=1, says=("regressed",), environment=variables)


def of_repeats(name: str, before: Edit, then: Edit, says: str) -> Trick:
    """A trick with the number of a list's repeats."""
    return Trick(name, accepted(WARN, before, then=then), says=(says,))


def from_ledger(name: str, then: Edit, says: str, *arguments: str) -> Trick:
    """A trick with the ledger of two candidates."""
    return Trick(name, tried(*TWO, then=then), says=(says,), arguments=(*GATE, *arguments))


FORGED_COMMIT: Final = compared(commit, BY_FILE, AS_UPDATE)
NOT_OF_HEAD: Final = ("the baseline does not follow that of HEAD",)
NO_UPDATE: Final = ("it differs without an update in its history",)
NO_COMMIT: Final = "git finds no such commit here"
LOST_LINE: Final = "line 1, on which the baseline relies, is missing"
GOOD_PAIR: Final = repeats("a", "good", "good")

VALUES_AND_LISTS: Final = [
    Trick(
        "the worse list in the better one's file, compared",
        compared(BY_FILE),
        code=1,
        says=("baseline not reproduced (mine: runs/a changed): regressed",),
    ),
    unproved("lower values, and another file of the list", compared(BY_FILE, LOWER)),
    unproved(
        "lower values, and one more row in the list",
        compared(BY_NAME, LOWER, lines(RUN, lambda rows: [*rows, "q0 Q0 x 9 0.1 a\n"])),
    ),
    unproved(
        "lower values, and another digest of the list",
        compared(
            BY_NAME, forge(lambda d: d["collections"][0]["digests"].update({"runs/a": "0" * 64}))
        ),
    ),
    unproved(
        "lower values, and the accepted list removed",
        accepted(
            COMPARE,
            policy("plain: {runs: [a, b]}", "plain: {runs: [b]}"),
            then=and_then(
                BY_NAME,
                LOWER,
                gone(RUN),
                replaced(DATASET, "  a: {path: a.trec, roles: [keyword]}\n", ""),
            ),
        ),
    ),
    unproved(
        "lower values, and another role of the list",
        compared(BY_NAME, LOWER, replaced(DATASET, "roles: [keyword]", "roles: [graph]")),
    ),
    Trick(
        "lower values, and no list that the baseline read",
        compared(BY_NAME, forge(lambda d: d["collections"][0]["lists"].clear())),
        says=("does not reproduce",),
    ),
    Trick(
        "`unreproduced: accept`",
        policy("  lists:", "  unreproduced: accept\n  lists:"),
        says=(*SEALED, "unreproduced block → accept (looser)"),
    ),
]
COMMITS: Final = [
    Trick(
        "lower values in the newest update",
        compared(commit, BY_FILE, LOWER),
        says=NOT_OF_HEAD,
        arguments=AT_HEAD,
    ),
    unproved("lower values as a new update, against `--base HEAD`", FORGED_COMMIT, *TO_HEAD),
    unproved(
        "the same committed, against the commit before",
        and_then(FORGED_COMMIT, commit),
        *("--base", "HEAD~1"),
    ),
    unproved(
        "the same with `unreproduced: accept` in experiment and baseline",
        compared(
            commit,
            BY_FILE,
            policy("  lists:", "  unreproduced: accept\n  lists:"),
            AS_UPDATE,
            stored(lambda d: d["policy"].update(unreproduced="accept")),
        ),
        *TO_HEAD,
    ),
    unproved(
        "the same behind a link in the baseline's place",
        and_then(
            FORGED_COMMIT,
            copied(BASELINE, "forged.json"),
            link(BASELINE, "../../forged.json"),
        ),
        *TO_HEAD,
    ),
    unproved(
        "the same in a bare repository beside the baseline",
        and_then(FORGED_COMMIT, bare_repository("reports/baselines")),
        *TO_HEAD,
    ),
    Trick("an older baseline of the repository", _older, says=NOT_OF_HEAD, arguments=AT_HEAD),
    Trick(
        "a baseline written anew for the worse list",
        _written_anew,
        says=NOT_OF_HEAD,
        arguments=AT_HEAD,
    ),
    Trick(
        "a larger tolerance in experiment and baseline",
        and_then(
            commit,
            max_drop("0.9"),
            stored(lambda d: d["policy"]["checks"]["RR@10"].update(max_drop=0.9)),
        ),
        says=NO_UPDATE,
        arguments=AT_HEAD,
    ),
    Trick(
        "a lower anchor",
        and_then(
            commit,
            stored(
                lambda d: (
                    d["history"][-1].update(is_anchor=False),
                    d["anchor"]["collections"][0]["values"].update(
                        {"RR@10": [0.1] * cases.QUERIES}
                    ),
                )
            ),
        ),
        says=NO_UPDATE,
        arguments=AT_HEAD,
    ),
    Trick(
        "a commit that is nowhere",
        commit,
        says=(f"--base nowhere: reports/baselines/mine.json: {NO_COMMIT}",),
        arguments=(*GATE, "--base", "nowhere"),
    ),
    Trick(
        "an option of git as the commit",
        commit,
        says=(NO_COMMIT,),
        arguments=(*GATE, "--base=--all"),
    ),
    Trick("a commit without a repository", says=(NO_COMMIT,), arguments=AT_HEAD),
]
REPEATS: Final = [
    of_repeats(
        "a new list of three repeats: worse, accepted, and one row",
        nothing,
        and_then(repeats("b", "worse", "good", "row"), BY_NAME),
        "runs/b has 3 repeats, and the baseline 1",
    ),
    of_repeats(
        "the accepted list with two repeats more",
        nothing,
        repeats("a", "good", "worse", "row"),
        "runs/a has 3 repeats, and the baseline 1",
    ),
    of_repeats(
        "one repeat more, of one row",
        GOOD_PAIR,
        repeats("a", "worse", "worse", "row"),
        "runs/a has 3 repeats, and the baseline 2",
    ),
    of_repeats(
        "repeats removed, so that one is left",
        GOOD_PAIR,
        repeats("a", "worse"),
        "runs/a has 1 repeat, and the baseline 2",
    ),
    Trick(
        "one poor repeat in the place of another",
        accepted(WARN, GOOD_PAIR, then=repeats("a", "worse", "row")),
        code=1,
        says=("baseline not reproduced (mine: runs/a changed): regressed",),
    ),
]
CACHES: Final = [
    from_cache("the better list in a committed cache", cached(commit)),
    from_cache("the same, added and not committed", cached(add)),
    from_cache("a cache without a repository", cached(lambda root: shutil.rmtree(root / ".git"))),
    from_cache(
        "a cache, and an index that git cannot read",
        cached(and_then(commit, text(".git/index", "broken"))),
    ),
    from_cache("a cache, and no git", cached(commit), PATH="/nowhere"),
    from_cache("a link to a committed folder as the cache", cached(linked_cache)),
    from_cache(
        "a committed cache whose name is a pattern",
        cached(commit, "c[ab]*e"),
        FUSION_BENCH_CACHE="c[ab]*e",
    ),
    from_cache(
        "a committed cache, and `GIT_DIR` of another repository",
        cached(other_repository),
        GIT_DIR="other/.git",
    ),
    from_cache(
        "a committed cache, and `GIT_INDEX_FILE` of an empty index",
        cached(other_repository),
        GIT_INDEX_FILE="absent",
    ),
]
CANDIDATES: Final = [
    from_ledger(
        "one candidate more than `candidates: {max: 2}`",
        nothing,
        "2 different candidates were checked since the last update",
    ),
    from_ledger("the ledger of candidates removed", gone(LEDGER), LOST_LINE),
    from_ledger("an empty ledger", text(LEDGER, ""), LOST_LINE),
    from_ledger(
        "a line of the ledger removed",
        lines(LEDGER, lambda rows: [rows[0], rows[2]]),
        "candidates.jsonl:2: not a line of a ledger of checked candidates",
    ),
    from_ledger(
        "a line of the ledger edited",
        replaced(LEDGER, '"line":2', '"line":1'),
        "candidates.jsonl:2: not a line of a ledger of checked candidates",
    ),
    from_ledger(
        "the lines of the ledger in another order",
        lines(LEDGER, lambda rows: [rows[0], rows[2], rows[1]]),
        "candidates.jsonl:2: not a line of a ledger of checked candidates",
    ),
    from_ledger("the ledger of another baseline", _other_ledger, LOST_LINE),
    from_ledger(
        "the last lines cut off, against `--base HEAD`",
        and_then(commit, lines(LEDGER, lambda rows: rows[:1])),
        "line 2, on which the baseline relies, is missing",
        *TO_HEAD,
    ),
    Trick(
        "`always_valid: {runs: 100}`, the earlier name",
        policy("  lists:", "  always_valid: {runs: 100}\n  lists:"),
        says=(*SEALED, "candidates.max 1 → 100"),
    ),
    Trick(
        "both names",
        accepted(
            BUDGET,
            then=and_then(BY_NAME, policy("  lists:", "  always_valid: {runs: 9}\n  lists:")),
        ),
        says=("an earlier name of candidates",),
    ),
]
