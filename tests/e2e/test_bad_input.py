"""Whatever a user can get wrong ends in one line that says where, the rule and what to do."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.tiny import DATASET, EXPERIMENT, edit

QRELS, QUERIES = "datasets/tiny/qrels.txt", "datasets/tiny/queries.jsonl"
A, R = "datasets/tiny/a.trec", "datasets/tiny/r.trec"
EVAL = ("eval", EXPERIMENT, "--no-plots", "--out", "out")
KNOWN_METHODS = ("known: rrf, rrf_v2, weighted_score",)
Break = Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """What is broken, and what the message must say."""

    name: str
    spoil: Break
    says: tuple[str, ...]
    arguments: tuple[str, ...] = EVAL
    environment: dict[str, str] = field(default_factory=dict)


def replaced(name: str, old: str, new: str) -> Break:
    return lambda root: edit(root, name, old, new)


def text(name: str, content: str | bytes) -> Break:
    data = content.encode() if isinstance(content, str) else content

    def spoil(root: Path) -> None:
        (root / name).write_bytes(data)

    return spoil


def gone(name: str) -> Break:
    return lambda root: (root / name).unlink()


def folder(name: str) -> Break:
    def spoil(root: Path) -> None:
        (root / name).unlink(missing_ok=True)
        (root / name).mkdir()

    return spoil


def linked(root: Path) -> None:
    (root / "outside.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    (root / QRELS).unlink()
    (root / QRELS).symlink_to(root / "outside.txt")


def second_dataset(root: Path) -> None:
    other = root / "datasets/other"
    other.mkdir()
    for name in tiny.FILES:
        if name.startswith("datasets/"):
            (other / Path(name).name).write_text(tiny.FILES[name], encoding="utf-8")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, other]")


def nothing(root: Path) -> None:
    """What is wrong is in the arguments."""


def system(new: str) -> Break:
    return replaced(EXPERIMENT, "  one:\n    runs: [a, b]\n", f"  one:\n{new}")


def fusion(options: str) -> Break:
    return replaced(EXPERIMENT, "{method: rrf_v2}", options)


def blend(options: str) -> Break:
    return replaced(EXPERIMENT, "{method: position_aware, reranker: r}", options)


def linked_in_a_circle(root: Path) -> None:
    (root / A).unlink()
    (root / A).symlink_to("a.trec")


def pipe(root: Path) -> None:
    (root / A).unlink()
    os.mkfifo(root / A)


def far_apart(method: str) -> Break:
    """Scores whose difference is beyond what a float can hold."""

    def spoil(root: Path) -> None:
        edit(
            root, EXPERIMENT, "{method: rrf_v2}", f"{{method: weighted_score, normalize: {method}}}"
        )
        edit(root, A, "q1 Q0 d2 1 9 a", "q1 Q0 d2 1 1.7e308 a")
        edit(root, A, "q1 Q0 d1 2 8 a", "q1 Q0 d1 2 -1.7e308 a")

    return spoil


def gated(root: Path) -> None:
    edit(root, EXPERIMENT, "baseline: one\n", "baseline: one\ngate: {RR@10: {max_drop: 0.01}}\n")


def and_then(*breaks: Break) -> Break:
    def spoil(root: Path) -> None:
        for one in breaks:
            one(root)

    return spoil


def top(line: str) -> Break:
    return replaced(EXPERIMENT, "baseline: one\n", f"baseline: one\n{line}\n")


#: Nine times nine times nine … of one value, from ten lines.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
SCREEN = "\x1b[31m"
GATE = ("gate", EXPERIMENT)
RERANK = ("rerank", "--dataset", "tiny", "--system", "a", "--store", "s.sqlite")
FUSION, BLEND = f"{EXPERIMENT}:9: systems.two.fusion", f"{EXPERIMENT}:10: systems.two.blend"

CASES = [
    # files
    Case("no experiment", gone(EXPERIMENT), (f"{EXPERIMENT}: no such file: check the path",)),
    Case(
        "no dataset",
        replaced(EXPERIMENT, "dataset: tiny", "dataset: tony"),
        (f"{EXPERIMENT}:1: dataset: in ", "unknown dataset 'tony'; did you mean 'tiny'?", "known:"),
    ),
    Case(
        "no dataset.yaml",
        replaced(EXPERIMENT, "dataset: tiny", "dataset: there/dataset.yaml"),
        ("there/dataset.yaml: no such file: check the path",),
    ),
    Case(
        "an experiment's name alone",
        nothing,
        ("e: no such file; did you mean 'experiments/e.yaml'?",),
        arguments=("eval", "e"),
    ),
    Case(
        "a slip in an experiment's name",
        nothing,
        ("no such file; did you mean 'experiments/e.yaml'?",),
        arguments=("eval", "experiments/ee.yaml"),
    ),
    Case(
        "a slip in a run's path",
        replaced(DATASET, "a.trec", "aa.trec"),
        (f"{DATASET}:5: runs.a.path: ", "aa.trec: no such file; did you mean 'a.trec'?"),
    ),
    Case("no run", gone(A), ("a.trec: no such file",)),
    Case("no qrels", gone(QRELS), (f"{DATASET}:2: qrels: ", "qrels.txt: no such file")),
    Case("no queries", gone(QUERIES), ("queries.jsonl: no such file",)),
    Case("empty run", text(A, ""), ("a.trec: the file is empty: at least one row is needed",)),
    Case("empty qrels", text(QRELS, "\n\n"), ("qrels.txt: the file is empty: at least one row",)),
    Case("empty queries", text(QUERIES, ""), ("queries.jsonl: the file is empty: at least one",)),
    Case("empty experiment", text(EXPERIMENT, ""), (EXPERIMENT, "a mapping", "found nothing")),
    Case(
        "columns of a run",
        replaced(A, "q1 Q0 d1 2 8 a", "q1 Q0 d1 2 8"),
        ("a.trec:2: 5 columns, and a TREC run has 6: query Q0 document rank score tag",),
    ),
    Case(
        "columns of qrels",
        replaced(QRELS, "q2 0 d3 2", "q2 d3 2"),
        ("qrels.txt:3: 3 columns, and a TREC qrels has 4: query 0 document grade",),
    ),
    Case(
        "score that is no number",
        replaced(A, "d1 2 8 a", "d1 2 high a"),
        ("a.trec:2: score 'high' is not a number",),
    ),
    Case("NaN", replaced(A, "d1 2 8 a", "d1 2 nan a"), ("a.trec:2: score nan is not a finite",)),
    Case("inf", replaced(A, "d1 2 8 a", "d1 2 -inf a"), ("a.trec:2: score -inf is not a finite",)),
    Case(
        "duplicate in a run",
        replaced(A, "q1 Q0 d1 2 8 a", "q1 Q0 d2 2 8 a"),
        ("a.trec:2: document 'd2' stands twice for query 'q1'",),
    ),
    Case(
        "duplicate in qrels",
        replaced(QRELS, "q1 0 d2 0", "q1 0 d1 0"),
        ("qrels.txt:2: document 'd1' stands twice for query 'q1'",),
    ),
    Case(
        "grade that is not whole",
        replaced(QRELS, "q2 0 d3 2", "q2 0 d3 1.5"),
        ("qrels.txt:3: grade '1.5' is not a whole number",),
    ),
    Case(
        "binary run",
        text(A, b"\x00\xff\xfe\x80binary"),
        ("a.trec: not UTF-8 text (byte 1): a plain or gzip text file is needed",),
    ),
    Case("binary experiment", text(EXPERIMENT, b"\xff\xfe"), (EXPERIMENT, "UTF-8 text")),
    Case(
        "null byte in the experiment", text(EXPERIMENT, "dataset: \x00"), (EXPERIMENT, "not valid")
    ),
    Case(
        "truncated gzip",
        text(A, gzip.compress(tiny.FILES[A].encode())[:-12]),
        ("a.trec: damaged gzip file", "copy it again"),
    ),
    Case("folder as a run", folder(A), ("a.trec: a folder, and a file is needed",)),
    Case("folder as queries", folder(QUERIES), ("queries.jsonl: a folder, and a file is needed",)),
    Case("folder as an experiment", folder(EXPERIMENT), (EXPERIMENT, "a folder, and a YAML file")),
    Case(
        "suffix",
        and_then(replaced(DATASET, "a.trec", "a.doc"), text("datasets/tiny/a.doc", "")),
        ("unknown file suffix '.doc'", "known: .csv"),
    ),
    Case(
        "null byte in a path",
        replaced(DATASET, "qrels.txt", '"a\\0.txt"'),
        (f"{DATASET}:2: qrels", "null"),
    ),
    Case(
        "queries of another dataset",
        text(QUERIES, '{"id": "other-1"}\n'),
        ("queries.jsonl: the queries and the qrels have no query in common", "'other-1'", "'q1'"),
    ),
    Case(
        "confidence",
        text(QUERIES, '{"id": "q1"}\n{"id": "q2", "confidence": 1.5}\n'),
        ("queries.jsonl:2: confidence must be between 0 and 1, given 1.5",),
    ),
    Case("line that is no JSON", text(QUERIES, "{'id': 1}\n"), ("queries.jsonl:1: not JSON",)),
    Case(
        "qrels without a common query",
        text(A, "x1 Q0 d1 1 1 a\n"),
        ("run 'a' and the qrels have no query in common", "'x1'", "'q1'", "same query ids"),
    ),
    Case(
        "rerank list without a common query",
        text(R, "x1 Q0 d1 1 1 a\n"),
        ("rerank list 'r' and the qrels have no query in common", "'x1'", "same query ids"),
    ),
    Case(
        "rerank score above unit",
        replaced(R, "q1 Q0 d2 2 0.1 r", "q1 Q0 d2 2 1.2 r"),
        ("r.trec:2: rerank score 1.2 is outside", "'unit'", "between 0 and 1", "logit, log_prob"),
    ),
    Case(
        "rerank score above a log probability",
        replaced(DATASET, "score_space: unit", "score_space: log_prob"),
        ("r.trec:1: rerank score 0.9 is outside", "'log_prob'", "at most 0", "declare the right"),
    ),
    Case(
        "rerank score missing",
        replaced(R, "q2 Q0 d8 3 0.2 r\n", ""),
        ("system 'two'", "reranker 'r'", "'d8' of query 'q2'", "lower 'depth'", "missing: below"),
    ),
    Case(
        "path that leaves",
        replaced(DATASET, "qrels.txt", "../qrels.txt"),
        (f"{DATASET}:2: qrels: '../qrels.txt' leaves the dataset's folder: copy the file into it",),
    ),
    Case(
        "absolute path",
        replaced(DATASET, "a.trec", "/etc/hosts.txt"),
        (f"{DATASET}:5: runs.a.path: '/etc/hosts.txt' leaves the dataset's folder",),
    ),
    Case("link that leaves", linked, (f"{DATASET}:2: qrels: 'qrels.txt' leaves the dataset's",)),
    Case(
        "documents that leave",
        replaced(DATASET, "name: tiny\n", "name: tiny\ndocuments: ../d.jsonl\n"),
        (f"{DATASET}:2: documents: '../d.jsonl' leaves the dataset's folder",),
    ),
    Case("circle of links", linked_in_a_circle, ("runs.a.path: 'a.trec': ", "loop")),
    Case("pipe", pipe, ("runs.a.path: 'a.trec' is no ordinary file: copy it into one",)),
    Case(
        "run of one endless line",
        text(A, "x" * 10_000_000),
        ("a.trec:1: 1 columns, and a TREC run has 6",),
    ),
    Case(
        "endless id",
        text(QUERIES, '{"id": "' + "q" * 10_000_000 + '"}'),
        ("no query in common", " … ", "check that both use the same query ids"),
    ),
    Case(
        "id that colours",
        text(A, f"{SCREEN}x1 Q0 d1 1 1 a\n"),
        ("no query in common (for example '\\x1b[31mx1'",),
    ),
    Case(
        "folder as a provenance record",
        folder("datasets/tiny/r.trec.meta.json"),
        ("r.trec.meta.json: not a provenance record",),
    ),
    *[
        Case(
            f"overflow in {method}",
            far_apart(method),
            ("run 'a' has scores up to 1.7e+308", method),
        )
        for method in ("none", "min_max", "z_score", "l2", "sum", "dbsf")
    ],
    # YAML
    Case(
        "aliases of aliases", text(EXPERIMENT, BOMB), (f"{EXPERIMENT}: stands for more than 100,",)
    ),
    Case(
        "aliases in a dataset", text(DATASET, BOMB), ("dataset.yaml: stands for more than 100,000",)
    ),
    Case(
        "endless YAML",
        text(EXPERIMENT, "dataset: " + "x" * 3_000_000),
        (f"{EXPERIMENT}: longer than 2,000,000 characters: is it the right file?",),
    ),
    Case("lists in lists", text(EXPERIMENT, "[" * 50_000), ("nests too deeply",)),
    Case(
        "key at the top",
        top("measure: [nDCG]"),
        (
            f"{EXPERIMENT}:4: measure: unknown key 'measure'; did you mean 'measures'?",
            "known: desc",
        ),
    ),
    Case(
        "key of a system",
        system("    runs: [a, b]\n    dept: 3\n"),
        (f"{EXPERIMENT}:7: systems.one.dept: unknown key 'dept'; did you mean 'depth'?", "known:"),
    ),
    Case(
        "key of a fusion",
        fusion("{method: rrf_v2, bonis: {1: 1}}"),
        (f"{FUSION}.bonis: unknown key 'bonis'; did you mean 'bonus'?", "known: method, weights"),
    ),
    Case(
        "key of a blend",
        blend("{method: position_aware, reranker: r, retrival: fused}"),
        (f"{BLEND}.retrival: unknown key", "did you mean 'retrieval'?", "known: method, reranker"),
    ),
    Case(
        "key of a normaliser",
        fusion("{method: weighted_score, normalize: {method: min_max, constnt: 1}}"),
        (f"{FUSION}.normalize.constnt: unknown key", "did you mean 'constant'?", "known: method"),
    ),
    Case(
        "key of a dataset",
        replaced(DATASET, "qrels: qrels.txt", "qrel: qrels.txt"),
        (f"{DATASET}:2: qrel: unknown key 'qrel'; did you mean 'qrels'?", "known: name, version"),
    ),
    Case(
        "key of a run",
        replaced(DATASET, "roles: [keyword]", "role: [keyword]"),
        (f"{DATASET}:5: runs.a.role: unknown key 'role'; did you mean 'roles'?",),
    ),
    Case(
        "key given twice",
        top("baseline: two"),
        (f"{EXPERIMENT}:4: baseline: the key stands twice (first on line 3): keep one",),
    ),
    Case(
        "a key of a system among the systems",
        replaced(
            EXPERIMENT,
            "    fusion: {method: rrf_v2}\n    blend: {method: position_aware, reranker: r}\n",
            "  fusion: {method: rrf_v2}\n",
        ),
        (
            f"{EXPERIMENT}:9: systems.fusion: is `fusion:` indented too little? It is a key of a "
            "system, so it belongs below 'two'",
        ),
    ),
    Case(
        "syntax",
        top("alpha: [0.05"),
        (f"{EXPERIMENT}:5: not valid YAML: ",),
    ),
    Case("alias in itself", text(EXPERIMENT, "a: &a [*a]\n"), ("an alias contains itself",)),
    Case(
        "half a character",
        top('description: "\\ud800"'),
        (f"{EXPERIMENT}:4: ", "holds half a character: write it whole"),
    ),
    Case("a list at the top", text(EXPERIMENT, "- a\n"), (EXPERIMENT, "a mapping", "found a list")),
    Case(
        "no baseline",
        replaced(EXPERIMENT, "baseline: one\n", ""),
        (f"{EXPERIMENT}: baseline: is required",),
    ),
    Case("blend by name alone", blend("replace"), (f"{BLEND}.reranker: is required",)),
    Case(
        "no reranker",
        blend("{method: position_aware}"),
        (f"{BLEND}.reranker: is required",),
    ),
    # names
    Case(
        "fusion method",
        fusion("{method: rff}"),
        (f"{FUSION}: unknown fusion", "'rff'", *KNOWN_METHODS),
    ),
    Case("no method", fusion("{k: 3}"), (f"{FUSION}: 'method' is required", *KNOWN_METHODS)),
    Case("fusion of a wrong kind", fusion("7"), (f"{FUSION}: a fusion method is a name or a map",)),
    Case(
        "blend",
        blend("positional"),
        (f"{BLEND}: unknown blend 'positional'", "known: linear, none, position_aware, replace"),
    ),
    Case(
        "normaliser",
        fusion("{method: weighted_score, normalize: minmax}"),
        (f"{FUSION}.normalize: unknown normaliser 'minmax'; did you mean 'min_max'?", "known:"),
    ),
    Case(
        "measure",
        replaced(EXPERIMENT, "nDCG@10", "nDGC@10"),
        (f"{EXPERIMENT}:2: measures.1: unknown measure 'nDGC@10'", "known:"),
    ),
    Case(
        "measure given twice",
        replaced(EXPERIMENT, "nDCG@10", "MRR@10"),
        (f"{EXPERIMENT}:2: measures.1: RR@10 is listed twice: keep one",),
    ),
    Case(
        "run",
        system("    runs: [a, c]\n"),
        (f"{EXPERIMENT}:6: systems.one.runs.1: unknown run 'c'", "known: a, b"),
    ),
    Case(
        "run given twice",
        system("    runs: [a, a]\n"),
        (f"{EXPERIMENT}:6: systems.one.runs: run 'a' is listed twice: keep one",),
    ),
    Case(
        "runs that are no list",
        system("    runs: a\n"),
        (f"{EXPERIMENT}:6: systems.one.runs: a list is needed, such as [a, b], given 'a'",),
    ),
    Case(
        "reranker",
        blend("{method: replace, reranker: rr}"),
        (f"{BLEND}.reranker: unknown reranker 'rr'; did you mean 'r'?", "known: r"),
    ),
    Case("split", top("split: tset"), ("tiny: unknown split 'tset'", "'test'", "known: all, dev")),
    Case(
        "query type",
        top("query_type: locl"),
        ("tiny: unknown query type 'locl'; did you mean 'local'?", "known: global, local"),
    ),
    Case(
        "query type of another split",
        top("query_type: relationship"),
        ("tiny: no judged query of type 'relationship' in split 'test'", "choose another"),
    ),
    Case(
        "baseline",
        replaced(EXPERIMENT, "baseline: one", "baseline: onne"),
        (
            f"{EXPERIMENT}:3: baseline: unknown baseline 'onne'; did you mean 'one'?",
            "known: one, two",
        ),
    ),
    Case(
        "ties",
        top("ties: tec"),
        (f"{EXPERIMENT}:4: ties: input should be 'trec' or 'first_seen', given 'tec'",),
    ),
    Case(
        "depth of an unused run",
        system("    runs: [a]\n    depth: {b: 3}\n"),
        (f"{EXPERIMENT}:7: systems.one.depth.b: unknown run 'b'", "known: a"),
    ),
    # values
    Case(
        "weight of an unused source",
        fusion("{method: rrf, weights: {graph: 2}}"),
        (f"{FUSION}: weights: 'graph' fits no source in use", "a, b, keyword, question, semantic"),
    ),
    Case(
        "two weights for one source",
        fusion("{method: rrf, weights: {b: 2, semantic: 1}}"),
        (f"{FUSION}: weights: 'b' and 'semantic' both fit source 'b'", "keep the one"),
    ),
    Case(
        "no question",
        replaced(DATASET, "question, ", ""),
        (f"{FUSION}: rrf_v2 needs a source of role 'question'", "declare the role", "or use rrf"),
    ),
    Case(
        "negative weight",
        fusion("{method: rrf, weights: {a: -1}}"),
        (f"{FUSION}.weights.a: input should be greater than or equal to 0, given -1",),
    ),
    Case(
        "NaN weight",
        fusion("{method: rrf, weights: {a: .nan}}"),
        (f"{FUSION}.weights.a: input should be ", "given nan"),
    ),
    Case(
        "k",
        fusion("{method: rrf, k: 1001}"),
        (f"{FUSION}.k: input should be less than or equal to 1000, given 1001",),
    ),
    Case(
        "beta",
        blend("{method: linear, reranker: r, beta: 1.5}"),
        (f"{BLEND}.beta: input should be less than or equal to 1, given 1.5",),
    ),
    Case(
        "depth",
        system("    runs: [a, b]\n    depth: 0\n"),
        (f"{EXPERIMENT}:7: systems.one.depth: input should be greater than or equal",),
    ),
    Case(
        "depth of one run",
        system("    runs: [a, b]\n    depth: {a: 0}\n"),
        (f"{EXPERIMENT}:7: systems.one.depth.a: input should be greater than or equal to 1",),
    ),
    Case(
        "resamples",
        top("resamples: 100"),
        (f"{EXPERIMENT}:4: resamples: input should be greater than or equal to 10000, given 100",),
    ),
    Case(
        "no system",
        text(EXPERIMENT, "dataset: tiny\nbaseline: one\nsystems: {}\n"),
        (f"{EXPERIMENT}:3: systems: ", "at least 1 item", "given {}"),
    ),
    Case(
        "system with a name of its own",
        system("    runs: [a, b]\n    name: uno\n"),
        (f"{EXPERIMENT}:4: systems: one: the key is the system's name: remove 'name'",),
    ),
    Case(
        "dataset and datasets",
        top("datasets: [tiny]"),
        (f"{EXPERIMENT}: name one 'dataset', or several 'datasets': both are given",),
    ),
    Case(
        "neither dataset nor datasets",
        replaced(EXPERIMENT, "dataset: tiny\n", ""),
        (f"{EXPERIMENT}: name one 'dataset', or several 'datasets': neither is given",),
    ),
    Case(
        "dataset given twice",
        replaced(EXPERIMENT, "dataset: tiny", "datasets: [tiny, tiny]"),
        (f"{EXPERIMENT}: dataset 'tiny' is listed twice: keep one",),
    ),
    Case(
        "datasets of one name",
        second_dataset,
        ("datasets/other/dataset.yaml:1: name: ", "is named 'tiny' too", "its own name"),
    ),
    Case(
        "unknown dataset of several",
        replaced(EXPERIMENT, "dataset: tiny", "datasets: [tiny, tony]"),
        (f"{EXPERIMENT}:1: datasets.1: in ", "unknown dataset 'tony'"),
    ),
    # environment and options
    Case(
        "switch",
        nothing,
        ("RAG_FUSION_V2_ENABLED: 'maybe' is neither true (1, true, yes, on) nor false (0, false",),
        environment={"RAG_FUSION_V2_ENABLED": "maybe"},
    ),
    Case(
        "option split",
        nothing,
        ("tiny: unknown split 'none'", "known: all, dev, test"),
        arguments=(*EVAL, "--split", "none"),
    ),
    Case(
        "out is a file",
        text("out.txt", "precious"),
        ("--out out.txt: out.txt is a file: name a folder",),
        arguments=("eval", EXPERIMENT, "--out", "out.txt"),
    ),
    Case(
        "out is below a file",
        text("out.txt", "precious"),
        ("--out out.txt/sub: out.txt is a file: name a folder",),
        arguments=("eval", EXPERIMENT, "--out", "out.txt/sub"),
    ),
    Case(
        "file name that colours",
        nothing,
        (r"\x1b[31m.yaml: no such file: check the path",),
        arguments=("eval", f"{SCREEN}.yaml"),
    ),
    Case("empty split", nothing, ("unknown split ''",), arguments=(*EVAL, "--split", "")),
    Case("gate out is a file", gated, ("is a file: name a folder",), arguments=(*GATE, "--out", A)),
    Case(
        "baseline that is a folder",
        and_then(gated, folder("b.json")),
        ("b.json: not a JSON baseline",),
        arguments=(*GATE, "--baseline", "b.json"),
    ),
    Case(
        "baseline that is binary",
        and_then(gated, text("b.json", b"\xff")),
        ("b.json: not a JSON baseline",),
        arguments=(*GATE, "--baseline", "b.json"),
    ),
    Case(
        "reason that is no text",
        gated,
        ("--reason: not UTF-8 text",),
        arguments=(*GATE, "--update", "--reason", "a\udcff"),
    ),
    Case(
        "query that is not judged",
        nothing,
        (r"no query '\x1b[31mzz' among the 4 judged ones",),
        arguments=("explain", f"{SCREEN}zz", "--experiment", EXPERIMENT),
    ),
    Case(
        "document that nobody returned",
        nothing,
        ("no source in use returned document 'zz' for query 'q1'",),
        arguments=("explain", "q1", "zz", "--experiment", EXPERIMENT),
    ),
    Case(
        "folder as a run file",
        nothing,
        ("datasets: a folder, and a file is needed",),
        arguments=("compare", "--qrels", QRELS, A, "datasets"),
    ),
    Case(
        "folder as a report",
        nothing,
        ("datasets: not a JSON report",),
        arguments=("compare", "datasets"),
    ),
    Case("no documents", nothing, ("no 'documents'",), arguments=(*RERANK, "--provider", "noop")),
    Case(
        "rerank configuration that is binary",
        text("c.yaml", b"\xff"),
        ("c.yaml: cannot be read as UTF-8 text",),
        arguments=(*RERANK, "--config", "c.yaml"),
    ),
    Case(
        "simulation into a file",
        nothing,
        (f"--out {A}: {A} is a file: name a folder",),
        arguments=("rerank", "--dataset", "tiny", "--system", "rrf", "--simulate", "--out", A),
    ),
    Case(
        "check of a broken dataset",
        replaced(A, "d1 2 8 a", "d1 2 nan a"),
        ("a.trec:2: score nan is not a finite number",),
        arguments=("dataset", "check", "tiny"),
    ),
    Case(
        "check of a rerank list of another dataset",
        text(R, "x1 Q0 d1 1 1 a\n"),
        ("rerank list 'r' and the qrels have no query in common",),
        arguments=("dataset", "check", "tiny"),
    ),
    Case(
        "show of what is not there",
        nothing,
        ("unknown dataset '../tiny'", "known: tiny"),
        arguments=("dataset", "show", "../tiny"),
    ),
    Case(
        "list with a broken dataset",
        text(DATASET, "name: [\n"),
        (f"{DATASET}:2: not valid YAML",),
        arguments=("dataset", "list"),
    ),
    Case(
        "report that is none",
        text("report.json", '{"format": "other"}'),
        ("report.json: not a report of fusion-bench",),
        arguments=("compare", "report.json"),
    ),
    Case(
        "report that is no JSON",
        nothing,
        ("qrels.txt: not a JSON report; run files need --qrels FILE",),
        arguments=("compare", QRELS),
    ),
    Case("no report", nothing, ("r.json: no such file",), arguments=("compare", "r.json")),
    Case(
        "run files of one name",
        nothing,
        ("two run files are named 'a': rename one of them",),
        arguments=("compare", "--qrels", QRELS, A, A),
    ),
    Case(
        "measure of run files",
        nothing,
        ("unknown measure 'nDGC'",),
        arguments=("compare", "--qrels", QRELS, A, R, "--measure", "nDGC"),
    ),
]


def one_line(err: str, case: Case) -> None:
    assert err.endswith("\n"), err
    assert err.count("\n") == 1, err
    assert err.startswith("error: "), err
    assert "Traceback" not in err
    for part in case.says:
        assert part in err, f"{part!r} is not in {err!r}"


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_and_exit_code_2(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case.spoil(tiny.make(tmp_path))
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)

    assert main(case.arguments) == 2

    out, err = capsys.readouterr()
    one_line(err, case)
    assert out == ""
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["NaN", "key at the top", "switch", "no report"])
def test_the_same_from_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    case.spoil(tiny.make(tmp_path))
    command = [sys.executable, "-m", "fusion_bench", *case.arguments]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **case.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    one_line(done.stderr, case)


def test_no_two_cases_share_a_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_files_are_fine_when_nothing_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    assert main(EVAL) == 0
    assert capsys.readouterr().err == ""
