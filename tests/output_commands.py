"""A call of each command that writes what an option names, on the project of the attacks."""

from tests.attacks.project import EXPERIMENT, QRELS, QUERIES, RUN
from tests.engines.pull import functions

OTHER = "datasets/mine/b.trec"
MODEL = "--llm model=none"
#: Command, option and suffix of its file → the words before the option, which need not succeed.
FILES = {
    ("dataset classify", "--out", ".jsonl"): f"dataset classify {QUERIES}",
    ("dataset classify", "--records", ".jsonl"): f"dataset classify {QUERIES} --out new.jsonl",
    ("compare", "--markdown", ".md"): f"compare --qrels {QRELS} {RUN} {OTHER}",
    ("dataset check", "--markdown", ".md"): "dataset check mine",
    ("dataset check", "--write-groups", ".jsonl"): "dataset check mine",
    ("eval", "--markdown", ".md"): f"eval {EXPERIMENT} --no-plots",
    ("fuse", "--out", ".trec"): f"fuse {RUN} {OTHER}",
    ("gate", "--comment", ".md"): f"gate {EXPERIMENT}",
    ("gate", "--junit", ".xml"): f"gate {EXPERIMENT}",
    ("gate", "--markdown", ".md"): f"gate {EXPERIMENT}",
    ("grades agreement", "--markdown", ".md"): f"grades agreement a={QRELS} b={QRELS}",
    (
        "grades estimate",
        "--markdown",
        ".md",
    ): f"grades estimate {EXPERIMENT} --human-judge a --machine-judge b",
    ("judge", "--export", ".csv"): "judge mine",
    ("judge", "--write-qrels", ".txt"): "judge mine",
    ("lint", "--markdown", ".md"): f"lint {EXPERIMENT}",
    ("power", "--markdown", ".md"): "power --sd .2",
    ("power", "--plot", ".png"): "power --sd .2",
    ("queries sample", "--out", ".jsonl"): f"queries sample {QUERIES} --n 1",
    ("rerank", "--out", ".jsonl"): "rerank --dataset mine --system a --provider noop",
    **{
        (f"retrieve {name}", "--out", ".trec"): f"retrieve {name} --documents d --replace {more}"
        for name, more in (*(("bm25", ""), ("dense", ""), ("hybrid", ""), ("hyde", MODEL)),)
    },
    ("retrieve dense", "--save-vectors", ".npz"): "retrieve dense --documents d --out new.trec",
    (
        "retrieve hyde",
        "--save-passages",
        ".jsonl",
    ): f"retrieve hyde --documents d --out new.trec {MODEL}",
    ("try", "--markdown", ".md"): f"try --qrels {QRELS} {RUN} {OTHER} --no-plots",
    ("tune", "--markdown", ".md"): f"tune {EXPERIMENT} --system plain --trials 2",
}
#: Command and option that names a folder → the words before the option, which succeed.
FOLDERS = {
    ("compare", "--out"): f"compare --qrels {QRELS} {RUN} {OTHER} --html --csv",
    ("dataset new", "folder"): f"dataset new ? {RUN} {OTHER}",
    ("diagnose", "--out"): f"diagnose {EXPERIMENT}",
    ("eval", "--out"): f"eval {EXPERIMENT}",
    ("export", "--out"): f"export {EXPERIMENT} --system plain --to langchain",
    ("gate", "--out"): f"gate {EXPERIMENT}",
    (
        "pull",
        "--out",
    ): f"pull python --queries asked.jsonl --set legs.a.function={functions.__name__}:ids",
    ("dataset schema", "--out"): "dataset schema",
    ("skill", "--out"): "skill",
    ("threshold", "--out"): f"threshold {EXPERIMENT} --mask --false-answers 0.5",
    ("try", "--out"): f"try --qrels {QRELS} {RUN} {OTHER} --role a=question",
    ("try", "--save"): f"try --qrels {QRELS} {RUN} {OTHER} --role a=question --no-plots",
    ("tune", "--out"): f"tune {EXPERIMENT} --system plain --trials 2 --folds 0 --no-plots",
}
#: Options whose folder needs what this project lacks; the tests of these commands try them.
TRIED_ELSEWHERE = {
    *((command, "--out") for command in ("dataset add",)),
    *((command, "--out") for command in ("campaign open", "mcp")),
    ("threshold", "--save"),
}
#: Options and arguments that name what a command reads, or keeps as its own and adds to.
READ = frozenset(
    {
        *("--baseline-file", "--config", "--datasets", "--documents", "--examples"),
        *("--from", "--import", "--llm-config", "--passages", "--plugin", "--qrels", "--queries"),
        *("--campaign", "--experiment", "--root", "--store", "--vectors"),
        *("campaign", "candidate", "experiment", "file", "files", "log", "queries", "target"),
    }
)
