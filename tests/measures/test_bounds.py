"""Which measures are known to lie in [0, 1]."""

from __future__ import annotations

import pytest

from fusion_bench.measures.aliases import is_bounded


@pytest.mark.parametrize("name", ["nDCG@10", "nDCG(dcg='exp-log2')@10", "RR(rel=2)@10", "AP"])
def test_known(name: str) -> None:
    assert is_bounded(name)


@pytest.mark.parametrize("name", ["NumRet@10", "NumRelRet", "plugin:Measure@10", "nDCGX"])
def test_unknown(name: str) -> None:
    assert not is_bounded(name)
