"""What is said about the numbers, and what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    RunInfo,
    SystemResult,
)
from fusion_bench.report.findings import sentences
from tests.report import cases
from tests.report.cases import (
    PRIMARY,
    SECOND,
    ceiling,
    collection,
    compared,
    floor,
    fused,
    run,
    system,
    tied,
)

BASE = system("base", 0.5, 0.4)
HIGH = system("high", 0.9, 0.8)
LOW = system("low", 0.2, 0.1)


def said(
    found: Collection,
    kind: str = "finding",
    *,
    v2: bool = True,
    settings: Mapping[str, object] | None = None,
) -> list[str]:
    all_of_them = sentences(cases.report(found, v2=v2, settings=settings), found)
    kinds = [sentence.kind for sentence in all_of_them]
    assert kinds == sorted(kinds)  # findings before warnings
    return [sentence.text for sentence in all_of_them if sentence.kind == kind]


KEEP = "No system is shown to be better than the baseline base: keep the default."


@pytest.mark.parametrize(
    ("systems", "comparisons", "text"),
    [
        (
            [BASE],
            [],
            f"base is the only system ({PRIMARY} 0.4500): there is nothing to compare.",
        ),
        (
            [BASE, HIGH],
            [compared("high", 0.4, "better", p=0.01, low=0.3, high=0.5)],
            f"high is shown to be better than the baseline base: {PRIMARY} 0.8500, +0.4000 "
            "[+0.3000, +0.5000], Holm p .010.",
        ),
        (
            [BASE, system("good", 0.6, 0.7), HIGH],
            [
                compared("good", 0.2, "better", p=0.0001, low=0.1, high=0.3),
                compared("high", 0.4, p=0.06, low=-0.1, high=0.9),
            ],
            f"good is shown to be better than the baseline base: {PRIMARY} 0.6500, +0.2000 "
            f"[+0.1000, +0.3000], Holm p <.001. The highest {PRIMARY} is 0.8500, of high (+0.4000 "
            "[-0.1000, +0.9000], Holm p .060): no difference is shown, which is not to say that "
            "there is none.",
        ),
        (
            [BASE, LOW],
            [compared("low", -0.3, "worse", p=0.01)],
            f"{KEEP} It has the highest {PRIMARY} as well.",
        ),
        (
            [BASE, HIGH],
            [compared("high", 0.4, p=0.0496, low=None, high=None)],
            f"{KEEP} The highest {PRIMARY} is 0.8500, of high (+0.4000 n/a, Holm p .0496): no "
            "difference is shown, which is not to say that there is none.",
        ),
        (
            [BASE, HIGH],
            [compared("high", 0.4, "no verdict", p=0.01, low=0.3, high=0.5)],
            f"{KEEP} The highest {PRIMARY} is 0.8500, of high (+0.4000 [+0.3000, +0.5000], Holm p "
            ".010): over judged documents only the sign is not the same, so no verdict is drawn.",
        ),
        (
            [system("twin", 0.5, 0.4), BASE],
            [compared("twin", 0.0, "identical", p=1.0, low=0.0, high=0.0)],
            f"{KEEP} The highest {PRIMARY} is 0.4500, of twin (0.0000 [0.0000, 0.0000], Holm p "
            "1): no query tells it from the baseline.",
        ),
    ],
)
def test_decision(
    systems: Sequence[SystemResult], comparisons: Sequence[ComparisonResult], text: str
) -> None:
    assert said(collection(*systems, comparisons=comparisons))[0] == text


def test_the_measure_that_does_not_decide_does_not_decide() -> None:
    other = compared("low", 0.4, measure=SECOND, p=0.0001).model_copy(update={"verdict": "better"})
    found = collection(BASE, LOW, comparisons=[other, compared("low", -0.3)])
    assert said(found)[0].startswith(KEEP)


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (["better"], None),
        (
            ["better", "better", "worse", "no verdict", "identical", "no difference shown"],
            "Of 6 systems compared: 2 shown better than the baseline, 1 shown worse, 1 not shown "
            "to differ, 1 without a verdict, 1 identical to it.",
        ),
        (["worse", "worse"], "Of 2 systems compared: 2 shown worse."),
    ],
)
def test_tally(verdicts: Sequence[str], text: str | None) -> None:
    names = [f"s{i}" for i in range(len(verdicts))]
    found = [compared(n, 0.1, verdict) for n, verdict in zip(names, verdicts, strict=True)]
    rows = [system(name, 0.6, 0.5) for name in names]
    tallies = [t for t in said(collection(BASE, *rows, comparisons=found)) if t.startswith("Of ")]
    assert tallies == ([] if text is None else [text])


def fusion(
    *systems: SystemResult, found: Sequence[ComparisonResult] = (), **changes: object
) -> str:
    """The sentence about fusion, or nothing."""
    texts = said(collection(*systems, comparisons=found, **changes))
    about = [text for text in texts if text.startswith("Fusion ")]
    assert len(about) <= 1
    return "".join(about)


ALONE = system("base", 0.5, 0.4, 0.6, 0.5)


@pytest.mark.parametrize(
    ("difference", "verdict", "p", "start", "end"),
    [
        (0.2, "better", 0.01, "Fusion pays here: base alone is at 0.5000", "Holm p .010)."),
        (0.2, "no difference shown", 0.2, "Fusion is not shown to pay here: ", "may be chance."),
        (-0.2, "worse", 0.01, "Fusion loses here: base alone (0.5000) beats every fusion", "010)."),
        (-0.2, "no difference shown", 0.2, "Fusion loses here: ", "; that may be chance."),
        (0.2, "no verdict", 0.01, "Fusion is not shown to pay here: ", "; that may be chance."),
        (0.0, "identical", 1.0, "Fusion gains nothing here: base alone is at 0.5000", "Holm p 1)."),
    ],
)
def test_fusion_against_the_baseline(
    difference: float, verdict: str, p: float, start: str, end: str
) -> None:
    values = (0.5 + difference, 0.4 + difference, 0.6 + difference, 0.5 + difference)
    found = [compared("both", difference, verdict, p=p)]
    text = fusion(ALONE, fused("both", *values), found=found)
    assert text.startswith(start)
    assert text.endswith(end)
    assert f"the best fusion, both, is at {0.5 + difference:.4f}" in text


def test_fusion_as_the_baseline() -> None:
    text = fusion(
        fused("base", 0.5, 0.4), system("a", 0.7, 0.6), found=[compared("a", 0.2, "better", p=0.01)]
    )
    assert text == (
        "Fusion loses here: a alone (0.6500) beats every fusion; the best fusion, base, is at "
        "0.4500 (-0.2000, Holm p .010)."
    )


@pytest.mark.parametrize(
    ("single", "both", "settings", "start", "reach"),
    [
        (
            (0.1, 0.2, 0.3),
            (0.5, 0.6, 0.7),
            {},
            "Fusion pays here: a alone",
            "+0.4000, 95 % interval [+0.4000, +0.4000], not adjusted).",
        ),
        (
            (0.1, 0.2, 0.3),
            (0.5, 0.2, 0.3),
            {"alpha": 0.1},
            "Fusion is not shown to pay here: a alone",
            "90 % interval [-0.2560, +0.5227], not adjusted); that may be chance.",
        ),
        (
            (0.5, 0.6, 0.7),
            (0.1, 0.2, 0.3),
            {"interval": "bootstrap"},
            "Fusion loses here: a alone (0.6000) beats every fusion",
            "-0.4000, 95 % interval [-0.4000, -0.4000], not adjusted).",
        ),
        ((None, 0.5, 0.5), (0.5, None, None), {}, "Fusion gains nothing here", "(n/a)."),
        (
            (None, 0.1, 0.1),
            (0.4, 0.5, 0.5),
            {},
            "Fusion pays here",
            "+0.4000, 95 % interval [+0.4000, +0.4000], not adjusted).",
        ),
    ],
)
def test_fusion_against_a_source_that_is_not_the_baseline(
    single: Sequence[float | None],
    both: Sequence[float | None],
    settings: dict[str, object],
    start: str,
    reach: str,
) -> None:
    rows = (system("a", *single), fused("both", *both), fused("base", 0.0, 0.0, 0.0))
    found = collection(*rows, comparisons=[compared("a"), compared("both")])
    texts = said(found, settings=settings)
    [text] = [text for text in texts if text.startswith("Fusion ")]
    assert text.startswith(start)
    assert text.endswith(reach)


def test_one_group_tells_no_spread() -> None:
    rows = (system("a", 0.1, 0.2), fused("both", 0.5, 0.6), fused("base", 0.0, 0.0))
    text = fusion(*rows, found=[compared("a"), compared("both")], groups=("g", "g"))
    assert text.startswith("Fusion is not shown to pay here")
    assert "interval n/a" in text


def test_the_floor_counts_as_a_source() -> None:
    text = fusion(
        fused("base", 0.5, 0.4), floor(0.9, 0.8, note="b, chosen on\n'dev'"), ceiling(1.0, 1.0)
    )
    assert text.startswith(
        "Fusion loses here: the best single source (b, chosen on\\n'dev') alone (0.8500) beats "
        "every fusion"
    )


def test_a_reranker_is_no_merit_of_fusion() -> None:
    reranked = fused("reranked", 0.9, 0.9, blend="position_aware")
    plain = fused("plain", 0.6, 0.5)
    text = fusion(BASE, reranked, plain, found=[compared("reranked", 0.45), compared("plain", 0.1)])
    assert "the best fusion without a reranker, plain, is at 0.5500" in text
    # … unless even it loses
    weak = fused("reranked", 0.3, 0.3, blend="replace")
    weaker = fused("plain", 0.2, 0.2)
    text = fusion(BASE, weak, weaker, found=[compared("reranked", -0.15), compared("plain", -0.2)])
    assert text.startswith("Fusion loses here: base alone (0.4500) beats every fusion;")
    assert "the best fusion, reranked, is at 0.3000" in text


@pytest.mark.parametrize(
    ("value", "verdict", "start"),
    [
        (0.9, "better", "Fusion and reranker together pay here: base alone is at 0.4500, "),
        (0.9, "no difference shown", "Fusion and reranker together are not shown to pay here: "),
        (0.2, "worse", "Fusion and reranker together lose here: base alone (0.4500) beats every "),
        (0.45, "identical", "Fusion and reranker together gain nothing here: base alone is at "),
    ],
)
def test_where_everything_is_reranked_nothing_is_said_of_fusion_alone(
    value: float, verdict: str, start: str
) -> None:
    row = fused("reranked", value, value, blend="position_aware")
    text = fusion(BASE, row, found=[compared("reranked", value - 0.45, verdict)])
    assert text.startswith(start)
    assert f"the best fusion with a reranker, reranked, is at {value:.4f}" in text
    assert text.endswith("; what fusion alone does is not in this experiment.")


@pytest.mark.parametrize(
    "systems",
    [
        [BASE, HIGH],  # no fusion
        [fused("base", 0.5, 0.4), system("reranked", 0.9, 0.9, blend="replace")],  # no source alone
        [system("base", None, None), fused("high", 0.9, 0.8)],
        [system("base", math.nan, 0.1), fused("high", None, None)],
    ],
)
def test_nothing_to_say_about_fusion(systems: Sequence[SystemResult]) -> None:
    assert fusion(*systems, found=[compared(systems[1].name)]) == ""


FEW = (
    "Too few queries to tell high from the baseline: 2 queries would show a difference of 0.5000 "
    "or more (power .8), and +0.4000 was observed."
)


@pytest.mark.parametrize(
    ("comparisons", "changes", "text"),
    [
        ([compared("high", 0.4, detectable=0.5)], {}, FEW),
        (
            [compared("high", 0.4, detectable=0.5)],
            {"groups": ("g", "g")},
            FEW.replace("2 queries", "2 queries in 1 group"),
        ),
        ([compared("high", 0.4, detectable=0.39)], {}, None),
        ([compared("high", 0.4)], {}, None),
        ([compared("high", 0.4, "no verdict", detectable=0.5)], {}, None),
        ([compared("high", 0.4, "better", detectable=0.5)], {}, None),
        (
            [compared("high", 0.4, detectable=0.5), compared("low", 0.1, "better")],
            {},
            None,
        ),
        ([], {}, None),
    ],
)
def test_power(
    comparisons: Sequence[ComparisonResult], changes: dict[str, object], text: str | None
) -> None:
    rows = (BASE, HIGH, LOW)[: len(comparisons) + 1]
    texts = said(collection(*rows, comparisons=comparisons, **changes))
    assert [t for t in texts if t.startswith("Too few")] == ([] if text is None else [text])


def test_headroom() -> None:
    bounds = (ceiling(0.9, 0.8, name="best source per query"), ceiling(1.0, 1.0))
    assert said(collection(BASE, *bounds))[-1] == (
        "Headroom: perfect order would reach 1.0000, +0.5500 over the best system (all candidates)."
    )
    assert all("Headroom" not in text for text in said(collection(BASE)))
    for rows in [(BASE, ceiling(None, None)), (system("base", None, None), ceiling(1.0, 1.0))]:
        texts = said(collection(*rows))
        assert all("Headroom" not in text for text in texts)
        assert all("inf" not in text for text in texts)


QUIET = collection(BASE, runs=(run(),))


def test_nothing_to_warn_of() -> None:
    assert said(QUIET, "warning") == []


def test_the_switch() -> None:
    [text] = said(QUIET, "warning", v2=False)
    assert text.startswith("RAG_FUSION_V2_ENABLED is off: rrf_v2 ran as rrf")


@pytest.mark.parametrize(
    ("info", "texts"),
    [
        (
            run("a\n", unanswered=1234),
            [
                "a\\n returned nothing for 1,234 judged queries of the dataset: where it stands "
                "alone they score 0."
            ],
        ),
        (
            run("r", rerank=True, unanswered=1, zero_scores=5),
            [
                "r returned nothing for 1 judged query of the dataset: their candidates have no "
                "rerank score."
            ],
        ),
        (
            run(zero_scores=1500),
            [
                "a has 1,500 rows scored exactly 0, most likely padding that fusion takes for "
                "results: see drop_zero_scores."
            ],
        ),
        (run(zero_scores=1500, drop=True), []),
        (
            run("r", rerank=True, degraded=3, notes=["rerank list 'r\n' is squeezed"]),
            [
                "r is degraded: 3 queries of the dataset without the scores of its provider.",
                "Rerank list 'r\\n' is squeezed.",
            ],
        ),
    ],
)
def test_input_lists(info: RunInfo, texts: list[str]) -> None:
    assert said(collection(BASE, runs=(info,)), "warning") == texts


@pytest.mark.parametrize(
    ("count", "strangers", "text"),
    [
        (1, (("Q5", "q05"),), "a answers 1 query that is not judged, and left out: 'Q5' (did you "),
        (400, (("Q5", "q05"), ("x", None)), "a answers 400 queries that are not judged, and left "),
        (400, (("x", None),), None),  # a larger list: nothing out of the ordinary
    ],
)
def test_queries_that_are_not_judged(
    count: int, strangers: tuple[tuple[str, str | None], ...], text: str | None
) -> None:
    info = run().model_copy(update={"unjudged_queries": count, "strangers": strangers})
    found = said(collection(BASE, runs=(info,)), "warning")
    assert (not found) if text is None else found[0].startswith(text)


@pytest.mark.parametrize(
    ("shares", "judgments", "names"),
    [
        ([0.2], "pooled", None),
        ([None], "pooled", None),
        ([0.9], "complete", None),
        ([0.21], "pooled", "s0 (at most 21.0 %)"),
        ([0.21, 0.1, 0.5], "sparse", "s0 and s2 (at most 50.0 %)"),
        ([0.3, 0.3, 0.3], "pooled", "s0, s1 and s2 (at most 30.0 %)"),
        ([0.3, 0.4, 0.3, 0.3, 0.3], "pooled", "s0, s1, s2 and 2 more (at most 40.0 %)"),
    ],
)
def test_unjudged(shares: Sequence[float | None], judgments: str, names: str | None) -> None:
    rows = [system(f"s{i}", 0.5, unjudged=share) for i, share in enumerate(shares)]
    found = [compared(f"s{i}", 0, baseline="s0") for i in range(1, len(rows))]
    made = collection(*rows, comparisons=found, baseline="s0", judgments=judgments)
    texts = said(made, "warning")
    if names is None:
        assert texts == []
    else:
        [text] = texts
        assert text.startswith("More than 20")
        assert text.endswith(f"is unjudged for {names}: good documents may count as bad.")


def test_what_top_k_hides_from_a_measure_is_said() -> None:
    def cut(row: SystemResult, top_k: int | None) -> SystemResult:
        return row.model_copy(update={"config": {**(row.config or {}), "top_k": top_k}})

    deep = dict.fromkeys((PRIMARY, "R@100", "AP"), BASE.measures[PRIMARY])
    rows = [
        cut(row.model_copy(update={"measures": deep}), top_k)
        for row, top_k in [(BASE, None), (HIGH, 10), (LOW, 10), (system("one", 0.1, 0.1), 100)]
    ]
    found = [compared(name) for name in ("high", "low", "one")]
    made = collection(*rows, comparisons=found, measures=(PRIMARY, "R@100", "AP"))
    end = "(top_k): what is lost there is no fault of the ranking."
    assert said(made, "warning") == [
        f"R@100 and AP of high and low are counted on 10 documents {end}",
        f"AP of one is counted on 100 documents {end}",
    ]
    shallow = collection(BASE, cut(HIGH, 10), comparisons=[compared("high")])
    assert said(shallow, "warning") == []


def alone(high: Sequence[float], verdict: str = "better", **changes: object) -> list[str]:
    """What is said of a shown difference of 0.4 where judged documents alone give these."""
    rows = [
        system("base", 0.1, 0.1, 0.1, judged_only=[0.0, 0.0, 0.0]),
        system("high", 0.5, 0.5, 0.5, judged_only=high),
    ]
    found = [compared("high", 0.4, verdict, low=0.3, high=0.5)]
    return said(collection(*rows, comparisons=found, **changes), "warning")


def test_a_gain_that_judged_documents_alone_do_not_show() -> None:
    [text] = alone([0.02, 0.03, 0.01])
    assert text.startswith(
        "Over judged documents alone the difference of high to the baseline is +0.0200 "
        "[-0.0048, +0.0448], not +0.4000: much of it is judged documents standing above unjudged "
    )
    assert text.endswith("set judgments: complete.")
    assert len(alone([0.9, -0.1, 0.1])) == 1  # 0.3 is more than half, but its interval holds 0


def test_when_judged_documents_alone_are_not_spoken_of() -> None:
    assert alone([0.3, 0.31, 0.29]) == []
    assert alone([0.02, 0.03, 0.01], "no difference shown") == []
    assert alone([0.02, 0.03, 0.01], judgments="complete") == []
    assert alone([0.02, 0.03, 0.01], knows_not_relevant=False) == []
    rows = [system(name, 0.1, judged_only=[0.0]) for name in ("base", "high")]
    odd = collection(*rows, comparisons=[compared("high", 0.0, "better")])
    assert said(odd, "warning") == []


def test_of_several_the_least_is_named_and_the_rest_counted() -> None:
    rows = [system("base", 0.1, 0.1, judged_only=[0.0, 0.0])]
    rows += [system(f"s{i}", 0.5, 0.5, judged_only=[i / 100, i / 100]) for i in (3, 1, 2)]
    found = [compared(f"s{i}", 0.4, "better", low=0.3, high=0.5) for i in (3, 1, 2)]
    [text] = said(collection(*rows, comparisons=found), "warning")
    assert "difference of s1 to" in text
    assert text.endswith("The same goes for 2 other systems.")


def test_flips() -> None:
    found = [compared("high", 0.4, "no verdict"), compared("low", -0.3)]
    [text] = said(collection(BASE, HIGH, LOW, comparisons=found), "warning")
    assert text == (
        "Over judged documents only, the difference of high to the baseline does not keep its "
        "sign: unjudged documents decide, so no verdict is drawn."
    )


@pytest.mark.parametrize(
    ("affected", "names"),
    [([1], None), ([2], "s0"), ([0, 3, 2], "s1 and s2"), ([None], None)],
)
def test_ties(affected: Sequence[int | None], names: str | None) -> None:
    values = (0.5,) * 20  # 5 % are one query
    rows = [
        system(f"s{i}", *values, ties=None if count is None else tied(count))
        for i, count in enumerate(affected)
    ]
    found = [compared(f"s{i}", 0, baseline="s0") for i in range(1, len(rows))]
    texts = said(collection(*rows, comparisons=found, baseline="s0"), "warning")
    if names is None:
        assert texts == []
    else:
        [text] = texts
        assert text.startswith(f"The order of tied documents decides {PRIMARY} on more than 5")
        most = max(count or 0 for count in affected)
        assert f"for {names} (at most {most} of 20): see" in text


def test_names_cannot_break_a_line() -> None:
    found = cases.full("x\n\x1b[31m", baseline="b\r")
    texts = [sentence.text for sentence in sentences(cases.report(found), found)]
    assert all(text.isprintable() for text in texts)
    assert any("x\\n\\x1b[31m is shown to be better than the baseline b\\r" in t for t in texts)


def test_document_ids_of_two_kinds_are_a_warning() -> None:
    found = cases.full()
    runs = tuple(run.model_copy(update={"known_documents": False}) for run in found.runs)
    report = cases.report(found.model_copy(update={"runs": runs}))
    texts = [s.text for s in sentences(report, report.collections[0]) if s.kind == "warning"]
    assert any(text.startswith("No document of ") and "is judged" in text for text in texts)
