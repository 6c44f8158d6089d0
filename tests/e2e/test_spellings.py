"""What is typed wrong, or as it was once spelled, is answered by what to type."""

import json
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.application.app import COMMAND_GROUPS, RENAMED, SYNONYMS
from fusion_bench.config.removed_names import GONE, describe_gone
from fusion_bench.experiment.system import System
from fusion_bench.models.rerank_config import RerankConfig
from tests import tiny
from tests.commands import leaf_commands, options_of

Capture = pytest.CaptureFixture[str]
MOST_COMMANDS = 26
ROWS = [(command, old, new) for command, row in RENAMED.items() for old, new in row.items()]
#: Option → what it takes in some commands and in others: gate and tune have no per-query values.
SEVERAL_METAVARS = {
    "--csv": {"", "[per-query]"},
    "--order": {"NAME=lower", None},  # of the scores of a list, or of the documents to be judged
    "--out": {"DIR", "FILE"},
    "--save": {"DIR", "FILE"},
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tiny.make(tmp_path)
    monkeypatch.chdir(folder)
    return folder


LISTS = ("datasets/tiny/a.trec", "datasets/tiny/b.trec")
#: What is often typed → what the answer has to name.
WRONG = {
    "eval datasets/tiny": ("datasets/tiny: ", "experiment.yaml"),
    "eval datasets/tiny/dataset.yaml": ("this is a dataset",),
    "explain q1 d1": ("for EXPERIMENT: q1: ", "before the query"),
    f"eval {tiny.EXPERIMENT} --measure nDCG@5": ("--set 'measures=[nDCG@5]'",),
    f"try --qrels hits.jsonl {' '.join(LISTS)}": ("hits.jsonl:1: a ranked list", "judgments"),
    "init": ("try --save mine", "dataset new"),
    "report x": ("compare", "eval"),
    "plot x": ("eval --plots",),
    "help tune": ("fusion-bench --help", "tune --help"),
    "help": ("COMMAND --help",),
    "version": ("fusion-bench --version",),
    "methods rff": ("you mean 'rrf'", "fusion-bench methods"),
    f"fuse {' '.join(LISTS)} --k 10": ("--set k=10",),
    f"eval {tiny.EXPERIMENT} --set one.k=10": ("--set systems.one.fusion.k=10",),
    f"eval {tiny.EXPERIMENT} --set one.top_k=5": ("--set systems.one.top_k=5",),
    f"compare --qrels q {' '.join(LISTS)} --system a": ("--candidate NAME",),
    "tune": ("EXPERIMENT", "experiments/default.yaml", "try --save"),
    "gate baseline.json": ("baseline.json: ", "--baseline-file", "compare"),
}


@pytest.mark.parametrize(("typed", "named"), WRONG.items())
def test_a_wrong_command_is_answered_by_the_right_one(
    typed: str, named: tuple[str, ...], root: Path, capsys: Capture
) -> None:
    (root / "hits.jsonl").write_text('{"query": "q1", "_id": "d1", "_score": 3.0}\n')
    (root / "baseline.json").write_text('{\n "format": "fusion-bench-baseline"\n}\n')
    assert main(shlex.split(typed)) == 2
    err = " ".join(capsys.readouterr().err.split())
    for part in named:
        assert part in err


def test_methods_shows_one_alone(capsys: Capture) -> None:
    for name in ("rrf", "reciprocal_rank_fusion"):
        assert main(["methods", name, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert [entry["method"] for entry in shown["fusion"]] == ["rrf"]
        assert [*shown["aliases"]] == ["reciprocal_rank_fusion"]
        assert [shown["blend"], shown["connector"]] == [[], []]
    assert main(["methods", "qdrant"]) == 0
    out = capsys.readouterr().out
    assert "Qdrant" in out
    assert "reciprocal_rank_fusion" not in out


def test_an_unknown_method_is_not_answered_by_all_names(root: Path, capsys: Capture) -> None:
    assert main(["fuse", *LISTS, "--method", "rff", "--out", str(root / "f.trec")]) == 2
    err = capsys.readouterr().err
    assert "you mean 'rrf'" in err
    assert "fusion-bench methods" in err
    assert "borda" not in err


@pytest.mark.parametrize(("command", "old", "new"), ROWS)
def test_an_old_spelling_names_the_new_one(
    command: str, old: str, new: str, capsys: Capture
) -> None:
    for words in ([old, "x"], [f"{old}=x"], ["x", old]):
        assert main([*command.split(), *words]) == 2
        err = capsys.readouterr().err
        assert f"{command} has no {old}: type {new}" in err
    known = options_of(leaf_commands()[command])
    assert old not in known
    typed = new.split()[0]
    assert typed in known or typed == command


def test_an_old_spelling_is_refused_as_json_and_is_a_value_after_two_dashes(
    root: Path, capsys: Capture
) -> None:
    assert main(["tune", "--export", "x", "--json"]) == 2
    assert "--export-study" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert main(["explain", "--", tiny.EXPERIMENT, "--experiment"]) == 2
    assert "no query '--experiment'" in capsys.readouterr().err
    assert root.exists()


def test_an_option_means_the_same_in_every_command() -> None:
    metavars = defaultdict(set)
    for command in leaf_commands().values():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                is_flag = bool(getattr(parameter, "is_flag", False))
                kind = "flag" if is_flag else parameter.metavar
                metavars[parameter.opts[0]].add(kind)
    several = {name: kinds for name, kinds in metavars.items() if len(kinds) > 1}
    assert several == SEVERAL_METAVARS


@pytest.mark.parametrize("word", SYNONYMS)
def test_a_synonym_is_no_command_and_names_one(word: str, capsys: Capture) -> None:
    known = {name.split()[0] for name in leaf_commands()}
    assert word not in known
    named = SYNONYMS[word].split()[0].rstrip(",")
    assert named in known or named in {"--help", "--version", "pip"}
    for typed in (word, word.upper()):
        assert main([typed]) == 2
        assert SYNONYMS[word].split(" COMMAND")[0] in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_names_the_last_version_and_what_to_use(
    name: str, root: Path, capsys: Capture
) -> None:
    if name.endswith(":"):
        owners = [m for m in (System, RerankConfig) if describe_gone(name) in m.old_keys.values()]
        assert [name.rstrip(":") in owner.old_keys for owner in owners] == [True]
        return
    for command, parsed in leaf_commands().items():
        typed = [f"{command} ", *(f"{command} {option} " for option in options_of(parsed))]
        assert not any(each.startswith(f"{name} ") for each in typed)
    words = name.split()
    assert main([*words, tiny.EXPERIMENT]) == 2
    assert capsys.readouterr().err == f"error: {describe_gone(name)}\n"
    assert main([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["message"] == describe_gone(name)
    assert root.exists()


def test_a_key_that_is_gone_is_refused_where_it_stands(root: Path, capsys: Capture) -> None:
    added = "systems:\n  x: {runs: [a], policy: regression}\n"
    tiny.edit(root, tiny.EXPERIMENT, "systems:\n", added)
    assert main(["eval", tiny.EXPERIMENT]) == 2
    error = capsys.readouterr().err
    assert describe_gone("policy:") in error
    assert re.search(r"e\.yaml:\d+: systems\.\w+\.policy: ", error), error


def test_every_command_of_a_group_is_there_and_stands_in_one() -> None:
    names = [name for group in COMMAND_GROUPS.values() for name in group]
    assert len(names) == len({*names})
    assert {*names} == {name.split()[0] for name in leaf_commands()}
    assert len(names) <= MOST_COMMANDS


def test_the_overview_has_the_groups_in_their_order(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [lines.index(f"{group}:") for group in COMMAND_GROUPS]
    assert headings == sorted(headings)
    ends = [*headings[1:], next(n for n, line in enumerate(lines) if "Exit codes" in line)]
    for names, first, end in zip(COMMAND_GROUPS.values(), headings, ends, strict=True):
        shown = [line.split()[0] for line in lines[first + 1 : end] if re.match(r"  \S", line)]
        assert shown == [*names]


def test_a_folder_is_its_experiment(root: Path, capsys: Capture) -> None:
    folder = root / "mine"
    folder.mkdir()
    assert main(["eval", "mine"]) == 2
    err = capsys.readouterr().err
    assert all(part in err for part in ("mine: a folder", "experiment.yaml"))
    (folder / "experiment.yaml").write_text((root / tiny.EXPERIMENT).read_text("utf-8"), "utf-8")
    assert main(["eval", "mine", "--datasets", "datasets"]) == 0
    assert "reports/mine/report.html" in capsys.readouterr().out
    (folder / "dataset.yaml").write_text("name: mine\n", "utf-8")
    assert main(["eval", "mine/dataset.yaml"]) == 2
    assert "mine/experiment.yaml" in capsys.readouterr().err
