"""Experiments that cannot be read, and paths that cannot be: one line, and nothing is written."""

import json
from pathlib import Path

import pytest

from tests.attacks.attack import Attack
from tests.attacks.project import BASELINE, DATASET, EXPERIMENT, QRELS, RUN
from tests.attacks.runner import run_attack
from tests.edits import Edit, folder, gone, link, nothing, pipe, replaced, text

LONG = "x" * 300
DEEP = "/".join(["y" * 200] * 30)
NOT_UTF_8 = "cannot be read as UTF-8 text"
#: What is done to the experiment, and what the message says of it.
UNREADABLE: dict[str, tuple[Edit, str]] = {
    "missing": (gone(EXPERIMENT), "no such file"),
    "a folder": (folder(EXPERIMENT), f"{EXPERIMENT}: a folder"),
    "a named pipe": (pipe(EXPERIMENT), "a named pipe, and a file is needed"),
    "no UTF-8": (text(EXPERIMENT, b"a: \xff\n"), NOT_UTF_8),
    "empty": (text(EXPERIMENT, ""), "given nothing"),
    "a link to itself": (link(EXPERIMENT, "mine.yaml"), "Too many levels of symbolic links"),
}
#: Every command that takes an experiment, with ? in its place.
COMMANDS = (
    "eval ?",
    "gate ?",
    "gate ? --update --reason x",
    "gate ? --self-test",
    "tune ?",
    "diagnose ?",
    "lint ?",
    "serve ? --no-open",
    "export ? --to qdrant",
    "fuse ? --system plain --out f.trec",
    "explain ? q0",
    "dataset unjudged ?",
    "rerank ? --dataset mine --system plain --provider noop",
)
#: Options and arguments that name a file or a folder, with ? in its place.
PLACES = (
    f"eval {EXPERIMENT} --no-plots --out ?",
    f"eval {EXPERIMENT} --no-plots --markdown ?",
    f"gate {EXPERIMENT} --baseline-file ?",
    f"tune {EXPERIMENT} --system plain --trials 2 --folds 0 --no-plots --out ?",
    f"tune {EXPERIMENT} --system plain --storage sqlite:///?",
    f"compare --qrels {QRELS} {RUN} ?",
    f"compare --qrels ? {RUN}",
    "compare ?",
    "dataset show ?",
    "dataset check ?",
    f"fuse {RUN} datasets/mine/b.trec --out ?.trec",
    "power --from ?",
    "dataset schema --out ?",
    f"try --qrels {QRELS} {RUN} ? --no-plots",
    "rerank --dataset ? --system a --provider noop",
    "rerank --dataset mine --system a --config ?",
    "dataset classify ? --out p.jsonl",
    "retrieve bm25 --dataset ?",
    "retrieve bm25 --dataset mine --documents ?",
)


def command(words: str, name: str) -> tuple[str, ...]:
    return tuple(word.replace("?", name) for word in words.split())


ATTACKS = [
    *(
        Attack(f"{words}: {kind}", command(words, EXPERIMENT), spoil, says=(EXPERIMENT, says))
        for words in COMMANDS
        for kind, (spoil, says) in UNREADABLE.items()
        if words in COMMANDS[:2] or kind in {"missing", "a link to itself"}
    ),
    *(
        Attack(f"{words}: long", command(words, name), nothing, says=("xxx",), never=("Errno",))
        for names, name in ((COMMANDS, f"{LONG}.yaml"), (PLACES, LONG))
        for words in names
    ),
    *(
        Attack(f"{words}: {kind}", command(words, name), nothing, says=says, never=("Errno",))
        for words in (COMMANDS[0], *PLACES[:3])
        for kind, name, says in (("deep", DEEP, ("yyy",)), ("null byte", "a\0b", ("null byte",)))
    ),
    *(
        Attack(
            f"{old} → {kind}",
            ("eval", EXPERIMENT),
            replaced(file, old, json.dumps(name)),
            says=(*says, "null byte" if kind == "null byte" else ""),
            never=("Errno",),
        )
        for file, old, says in (
            (EXPERIMENT, "mine", (f"{EXPERIMENT}:1",)),
            (DATASET, "a.trec", ("dataset.yaml:5",)),
            (DATASET, "qrels.txt", ("dataset.yaml:2",)),
        )
        for kind, name in (("long", LONG), ("deep", DEEP), ("null byte", "a\0b"))
    ),
    *(
        Attack(
            f"{words} {file}{force}",
            (*words.split(), file, *force.split()),
            says=(file, "would replace an input" if force and file == BASELINE else ""),
        )
        for force in ("", " --force")
        for words, files in (
            (f"eval {EXPERIMENT} --markdown", (EXPERIMENT, DATASET, QRELS, RUN)),
            (f"tune {EXPERIMENT} --system plain --markdown", (EXPERIMENT, QRELS)),
            (f"lint {EXPERIMENT} --markdown", (EXPERIMENT, DATASET, QRELS, RUN)),
            (f"gate {EXPERIMENT} --markdown", (BASELINE, f"datasets/../{EXPERIMENT}")),
            (f"gate {EXPERIMENT} --comment", (BASELINE, RUN)),
            (f"gate {EXPERIMENT} --junit", (QRELS,)),
            (f"try --qrels {QRELS} {RUN} datasets/mine/b.trec --markdown", (QRELS, RUN)),
            (f"compare --qrels {QRELS} {RUN} --markdown", (QRELS, RUN)),
        )
        for file in files
    ),
    Attack(
        "fuse, without a system", command("fuse ? --out f.trec", EXPERIMENT), says=("--system",)
    ),
    Attack("a blank", command("fuse ? --out f.trec", "")),
    *(
        Attack(f"{words}: {name!r}", command(words, name), says=("no such file",))
        for words in COMMANDS[:2]
        for name in ("a\nb.yaml", "../../../absent.yaml")
    ),
]


@pytest.mark.parametrize("case", ATTACKS, ids=lambda case: case.name.replace(DEEP, "deep")[:90])
def test_refused_in_one_line(case: Attack, project: Path) -> None:
    run_attack(case, project)
