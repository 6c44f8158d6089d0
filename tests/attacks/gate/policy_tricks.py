"""Tricks with the policy and with the values in it."""

from typing import Final

from tests.attacks.gate.trick import POLICY, SEALED, Trick, max_drop, policy
from tests.attacks.project import GATE
from tests.edits import and_then

LOOSER: Final = [
    Trick("`max_drop: 0.5`", max_drop("0.5"), says=(*SEALED, "0.01 → 0.5 (looser)")),
    Trick("`max_drop: 0.0100001`", max_drop("0.0100001"), says=SEALED),
    Trick(
        "`max_drop_since_anchor: 0.9`",
        policy("RR@10: {max_drop: 0.01}", "RR@10: {max_drop: 0.01, max_drop_since_anchor: 0.9}"),
        says=(*SEALED, "0.02 → 0.9 (looser)"),
    ),
    Trick(
        "a check removed",
        policy("    RR@10: {max_drop: 0.01}\n", ""),
        says=(*SEALED, "checks.RR@10 {max_drop: 0.01} → none"),
    ),
    Trick(
        "all checks of another measure",
        and_then(
            policy("    RR@10: {max_drop: 0.01}\n", "    R@100: {max_drop: 0.01}\n"),
            policy("    P@1: {max_drop: 0.01}\n", ""),
        ),
        says=SEALED,
    ),
    Trick("a deeper cutoff", policy("    P@1:", "    P@5:"), says=SEALED),
    Trick("judged documents only", policy("    P@1:", "    P(judged_only=True)@1:"), says=SEALED),
    Trick("a slice removed", policy("slices: [local]", "slices: []"), says=SEALED),
    Trick("another slice", policy("slices: [local]", "slices: [global]"), says=SEALED),
    Trick(
        "a check without its slices",
        policy("P@1: {max_drop: 0.01}", "P@1: {max_drop: 0.01, slices: []}"),
        says=(*SEALED, "checks.P@1.slices"),
    ),
    Trick("the guard removed", policy("[{measure: RR@10, max_loss", "[] #"), says=SEALED),
    Trick("a guard for nine tenths", policy("max_share: 0.1", "max_share: 0.9"), says=SEALED),
    Trick("a guard for large losses", policy("max_loss: 0.7", "max_loss: 0.99"), says=SEALED),
    Trick("a guard of another measure", policy("{measure: RR@10", "{measure: P@1"), says=SEALED),
    Trick("the golden query removed", policy("golden: [{query", "golden: [] #"), says=SEALED),
    Trick("a golden query with a large top", policy("top: 1", "top: 99"), says=SEALED),
    Trick("another golden document", policy("document: d3", "document: n0"), says=SEALED),
    Trick("another golden query", policy("query: q3", "query: q0"), says=SEALED),
    Trick(
        "`inconclusive: warn`", policy("  lists:", "  inconclusive: warn\n  lists:"), says=SEALED
    ),
    Trick("`lists: compare`", policy("lists: refuse", "lists: compare"), says=SEALED),
    Trick("`degraded: accept`", policy("  lists:", "  degraded: accept\n  lists:"), says=SEALED),
    Trick(
        "`candidates`, so that no test ever rejects",
        policy("  lists:", "  candidates: {max: 100}\n  lists:"),
        says=(*SEALED, "candidates.max 1 → 100"),
    ),
    Trick("another seed", policy("dataset: mine", "dataset: mine\nseed: 1"), says=SEALED),
    Trick(
        "`--set` with a larger tolerance",
        arguments=(*GATE, "--set", "gate.checks.RR@10.max_drop=0.5"),
        says=SEALED,
    ),
    Trick("`--set seed=1`", arguments=(*GATE, "--set", "seed=1"), says=SEALED),
]
VALUES: Final = [
    Trick("`max_drop: true`", max_drop("true"), says=("max_drop",)),
    Trick("`max_drop: '1'`", max_drop("'1'"), says=("max_drop",)),
    Trick("`max_drop: 0_005`", max_drop("0_005"), says=("mine.yaml:10: ",)),
    Trick("`max_drop: 1:30`", max_drop("1:30"), says=("mine.yaml:10: ",)),
    Trick("`max_drop: 0x1`", max_drop("0x1"), says=("mine.yaml:10: ",)),
    Trick("`max_drop: 1`", max_drop("1"), says=("mine.yaml:10: gate.checks.RR@10.max_drop: less",)),
    Trick("`max_drop: 5`", max_drop("5"), says=("less than 1 is needed",)),
    Trick("`max_drop: .inf`", max_drop(".inf"), says=("mine.yaml:10: ",)),
    Trick("`max_drop: .nan`", max_drop(".nan"), says=("mine.yaml:10: ",)),
    Trick("`max_drop: -0.01`", max_drop("-0.01"), says=("greater than or equal to 0",)),
    Trick("`max_drop: 1e400`, beyond all floats", max_drop("1e400"), says=("max_drop",)),
    Trick("`max_loss: 1`", policy("max_loss: 0.7", "max_loss: 1"), says=("less than 1",)),
    Trick("`max_share: 1`", policy("max_share: 0.1", "max_share: 1"), says=("less than 1",)),
    Trick("no policy", policy(POLICY, ""), says=("no 'gate' key",)),
    Trick("an empty policy", policy(POLICY, "gate: {}\n"), says=("gate",)),
    Trick("no check", policy(POLICY, "gate: {system: live, checks: {}}\n"), says=("checks",)),
]
