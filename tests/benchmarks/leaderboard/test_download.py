"""The table to download: every headline of the page can be computed from it."""

import re

import numpy as np
import pandas as pd
import pytest

from benchmarks.leaderboard.page import PAGE
from benchmarks.leaderboard.random_effects import join_clusters, pool_effects
from benchmarks.studies.leaderboard.__main__ import (
    ALIKE,
    DOWNLOAD,
    STUDIES,
    describe_row,
    format_csv,
    list_means,
)
from tests.benchmarks.leaderboard.test_answers import make_results, plain_values

CLUSTERS = dict.fromkeys(ALIKE.split(","), ALIKE)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_headline_follows_from_the_table(number: int) -> None:
    rows = pd.read_csv(STUDIES / DOWNLOAD)
    rows = rows[(rows["kind"] == f"headline {number}") & (rows["error by group"] > 0)]
    columns = zip(rows["collection"], rows["nDCG@10"], rows["error by group"] ** 2, strict=True)
    joined = join_clusters({name: (mean, variance) for name, mean, variance in columns}, CLUSTERS)
    means, variances = zip(*joined.values(), strict=True)
    effect = pool_effects(means, variances)
    page = (STUDIES / PAGE).read_text("utf-8")
    [paragraph] = re.findall(rf"^{number}\. .*", page, re.MULTILINE)
    numbers = [effect.mean, effect.low, effect.high, effect.new_low, effect.new_high]
    shown = re.findall(r"[+-]\d\.\d{4}", paragraph)
    assert [float(each) for each in shown] == pytest.approx(numbers, abs=1.01e-4)
    assert f"over {effect.effects} effects" in paragraph


def test_errors_by_query_and_by_group() -> None:
    results = make_results("one", plain_values())
    values = results.values("a")
    assert values is not None
    cells = {(row["row"], row["kind"]): row for row in map(describe_row, list_means([results]))}
    groups = pd.Series(results.head.groups)
    sums = pd.Series(values - values.mean()).groupby(groups).sum()
    by_query = values.std(ddof=1) / np.sqrt(len(values))
    by_group = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values)
    found = cells["a", "source"]
    assert found["error by query"] == pytest.approx(by_query)
    assert found["error by group"] == pytest.approx(by_group)
    untuned = cells["rrf − a", "headline 1, untuned"]
    assert untuned["nDCG@10"] == pytest.approx(cells["rrf", "method"]["nDCG@10"] - values.mean())
    assert b"error by group" in format_csv(cells.values())
