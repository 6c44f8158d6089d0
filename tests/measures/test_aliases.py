from __future__ import annotations

import re

import pytest

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures import measure_classes, parse_measure
from fusion_bench.measures.aliases import (
    ALIASES,
    display_measure,
    list_renamed,
    resolve_alias,
    suggest_measures,
)
from fusion_bench.measures.external_measures import parse_with_ir_measures


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mrr@10", "RR@10"),
        ("MRR@10", "RR@10"),
        ("mrr(rel=2)@10", "RR(rel=2)@10"),
        ("rr", "RR"),
        ("recip_rank", "RR"),
        ("recip_rank_10", "RR@10"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg_burges@10", "nDCG(dcg='exp-log2')@10"),
        ("ndcg_burges(judged_only=True)@10", "nDCG(dcg='exp-log2',judged_only=True)@10"),
        ("recall@50", "R@50"),
        ("recall_50", "R@50"),
        ("Recall@50", "R@50"),
        ("hit@1", "Success@1"),
        ("hit_rate@5", "Success@5"),
        ("success_1", "Success@1"),
        ("map", "AP"),
        ("MAP", "AP"),
        ("map@100", "AP@100"),
        ("map_cut_100", "AP@100"),
        ("P_5", "P@5"),
        ("p@5", "P@5"),
        ("precision@5", "P@5"),
        ("judged@10", "Judged@10"),
        ("bpref", "Bpref"),
        ("r-precision", "Rprec"),
        ("iprec_at_recall_0.1", "IPrec@0.1"),
    ],
)
def test_an_alias_becomes_the_canonical_name(text: str, name: str) -> None:
    assert resolve_alias(text) == name
    assert parse_measure(text) == parse_measure(name)
    assert parse_measure(text).name == name


@pytest.mark.parametrize(
    "text", ["", "nDCG@10", "RR(rel=2)@10", "AP", "Bpref", "foo@3", "mrr_10@5", "R-prec", "p:q@5"]
)
def test_any_other_text_stays(text: str) -> None:
    assert resolve_alias(text) == text


def test_no_alias_takes_the_name_of_a_measure() -> None:
    names = {name.lower() for name in measure_classes.load_built_in()}
    assert not names & ALIASES.keys()


@pytest.mark.parametrize("name", ["MAP", "MRR", "NDCG", "Precision", "Recall", "RPrec", "BPref"])
def test_agrees_with_the_aliases_of_ir_measures(name: str) -> None:
    cutoff = "@5" if name in {"Precision", "Recall"} else ""
    assert parse_measure(name + cutoff).name == str(parse_with_ir_measures(name + cutoff))


@pytest.mark.parametrize("text", ["recall", "hit", "p"])
def test_an_alias_keeps_the_rules_of_its_measure(text: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot use measure '{text}': .* needs a cutoff"):
        parse_measure(text)


def test_lists_what_was_renamed_once() -> None:
    texts = ["mrr@10", "nDCG@10", "mrr@10", "P_5"]
    assert list_renamed(texts) == ("mrr@10 → RR@10", "P_5 → P@5")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("RR@10", "RR@10 (MRR)"),
        ("RR(rel=2)@10", "RR(rel=2)@10 (MRR)"),
        ("AP", "AP (MAP)"),
        ("nDCG@10", "nDCG@10"),
        ("Rprec", "Rprec"),
    ],
)
def test_tables_add_the_common_name(name: str, shown: str) -> None:
    assert display_measure(name) == shown


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ndgc@10", "nDCG@10"),
        ("NDGC@10", "nDCG@10"),
        ("ndcg10", "nDCG@10"),
        ("mrrr@10", "RR@10"),
        ("ndgc(rel=2)@5", "nDCG(rel=2)@5"),
        ("hitrate5", "Success@5"),
        ("MAPP", "AP"),
    ],
)
def test_a_misspelled_measure_suggests_the_canonical_name(text: str, first: str) -> None:
    assert suggest_measures(text)[0] == first
    with pytest.raises(UnknownNameError, match="did you mean " + re.escape(repr(first))):
        parse_measure(text)


def test_nothing_is_suggested_for_other_names() -> None:
    assert suggest_measures("xyz@3") == suggest_measures("@3") == []
