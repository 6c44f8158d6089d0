"""Tricks with systems, queries, judgments and lists."""

from typing import Final

from tests.attacks.gate.trick import OTHER_RUN, SEALED, Trick, copied, lines, pattern, policy
from tests.attacks.project import DATASET, EXPERIMENT, GATE, QRELS, QUERIES, RUN
from tests.edits import and_then, gone, replaced, text

SYSTEMS: Final = [
    Trick("another `gate.system`", policy("system: live", "system: plain"), says=SEALED),
    Trick(
        "a good system beside the worse one",
        and_then(
            policy("  live: {runs: [b]}", "  live: {runs: [b]}\n  good: {runs: [a]}"),
            policy("system: live", "system: good"),
        ),
        says=(*SEALED, "system live → good"),
    ),
    Trick("the gated system renamed", pattern(EXPERIMENT, "live", "lively"), says=SEALED),
    Trick(
        "no `gate.system`, and another baseline system",
        and_then(policy("  system: live\n", ""), policy("baseline: plain", "baseline: live")),
        says=SEALED,
    ),
    Trick(
        "the names of two systems swapped",
        and_then(
            policy("  plain: {runs: [a, b]}", "  x: {runs: [b]}"),
            policy("  live: {runs: [b]}", "  plain: {runs: [b]}"),
            policy("  x: {runs: [b]}", "  live: {runs: [a, b], depth: 1}"),
        ),
        code=1,
        says=("regressed",),
    ),
    Trick(
        "a list cut at rank 1", policy("live: {runs: [b]}", "live: {runs: [b], depth: 1}"), code=1
    ),
    Trick("`top_k: 1`", policy("live: {runs: [b]}", "live: {runs: [b], top_k: 1}"), code=1),
    Trick(
        "`--set gate.system=plain`", arguments=(*GATE, "--set", "gate.system=plain"), says=SEALED
    ),
    Trick("regressions not shown", policy("  lists:", "  worst: 0\n  lists:"), code=1),
    Trick("other measures of the report", policy("measures: [RR@10]", "measures: [R@100]"), code=1),
]
QUERIES_AND_LISTS: Final = [
    Trick(
        "judgments of the losing queries removed",
        lines(QRELS, lambda rows: [row for row in rows if int(row.split()[0][1:]) % 4 == 0]),
        says=("contents of qrels changed", "45 missing"),
    ),
    Trick(
        "the first documents judged relevant",
        lines(QRELS, lambda rows: [*rows, *(f"{r.split()[0]} 0 n0 1\n" for r in rows)]),
        says=("contents of qrels changed",),
    ),
    Trick("one grade raised", replaced(QRELS, "q7 0 d7 1\n", "q7 0 d7 2\n"), says=("qrels",)),
    Trick(
        "a judgment of a document that no list has",
        lines(QRELS, lambda rows: [*rows, "q7 0 unseen 0\n"]),
        says=("contents of qrels changed",),
    ),
    Trick("no judgments", text(QRELS, ""), says=("qrels",)),
    Trick("the judgments removed", gone(QRELS), says=("qrels",)),
    Trick(
        "the losing queries in another split",
        pattern(QUERIES, r'\{"id": "q(\d*[13579])"', r'{"id": "q\1", "split": "train"'),
        says=("contents of queries.",),
    ),
    Trick(
        "the losing queries of another type",
        pattern(QUERIES, '"local"', '"other"'),
        says=("contents of queries.",),
    ),
    Trick(
        "all queries in one group",
        pattern(QUERIES, r'"g\d+"', '"g"'),
        says=("contents of queries.",),
    ),
    Trick(
        "`query_type: global`",
        policy("dataset: mine", "dataset: mine\nquery_type: global"),
        says=("query_type changed",),
    ),
    Trick(
        "`where` for the easy queries",
        policy("dataset: mine", "dataset: mine\nwhere: {group: [g0, g2]}"),
        says=("where",),
    ),
    Trick(
        "`judgments: complete`",
        replaced(DATASET, "name: mine", "name: mine\njudgments: complete"),
        says=("judgments changed",),
    ),
    Trick(
        "`binary_relevance: 2`",
        replaced(DATASET, "name: mine", "name: mine\nbinary_relevance: 2"),
        says=("binary_relevance changed",),
    ),
    Trick(
        "the dataset renamed",
        replaced(DATASET, "name: mine", "name: yours"),
        says=("yours: the baseline has no such collection",),
    ),
    Trick(
        "`ties: first_seen`",
        policy("dataset: mine", "dataset: mine\nties: first_seen"),
        says=("tie rule",),
    ),
    Trick("the worse list under the better one's name", copied(OTHER_RUN, RUN), says=("runs/a",)),
    Trick(
        "the better list's name for the worse file",
        and_then(
            replaced(DATASET, "a: {path: a.trec", "a: {path: b.trec"),
            policy("live: {runs: [b]}", "live: {runs: [a]}"),
        ),
        says=("runs/a changed",),
    ),
    Trick("an empty list", text(OTHER_RUN, ""), says=("b",)),
    Trick("the list removed", gone(OTHER_RUN), says=("b.trec",)),
]
SURROUNDINGS: Final = [
    Trick("nothing but the regression", code=1, says=("regressed",)),
    Trick("`--json`", arguments=(*GATE, "--json"), code=1, says=("regressed",)),
    Trick("`RAG_FUSION_V2_ENABLED=false`", environment={"RAG_FUSION_V2_ENABLED": "false"}, code=1),
    Trick("`GITHUB_ACTIONS=true`", environment={"GITHUB_ACTIONS": "true"}, code=1),
]
