"""The suffix of a file chooses its format, which another installed distribution may bring."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.io.dataset_cache import Cache
from fusion_bench.io.formats import find_distribution
from fusion_bench.io.load_records import load_qrels, load_run
from tests.config.plugin_package import DISTRIBUTION, install_package, put_on_path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the tiny distribution is installed."""
    install_package(tmp_path / "site")
    put_on_path(tmp_path / "site", monkeypatch)
    yield tmp_path / "site"
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny_plugin"]:
        del sys.modules[name]


@pytest.mark.usefixtures("site")
def test_a_format_of_an_installed_distribution_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.tiny"
    path.write_text("q;d;2\nq;e;1\n")
    assert load_run(path).to_dict() == {"q": {"d": 2.0, "e": 1.0}}
    assert load_qrels(path).to_dict() == {"q": {"d": 2, "e": 1}}
    path.write_text("q;d;2\nq;e;x\n")
    with pytest.raises(DataError, match=r"a\.tiny:2:.*'x'"):
        load_run(path)


@pytest.mark.usefixtures("site")
def test_the_cache_tells_the_versions_of_a_format_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cache = tmp_path / "a.tiny", Cache(tmp_path / "cache", max_bytes=1)
    path.write_text("q;d;2\n")
    assert find_distribution(path) == DISTRIBUTION
    key = cache.file_key(path, "qrels", None, None)
    install_package(tmp_path / "newer", "1.3")
    put_on_path(tmp_path / "newer", monkeypatch)
    assert find_distribution(path) == "tiny-plugin==1.3"
    assert cache.file_key(path, "qrels", None, None) != key


def test_a_built_in_format_is_of_no_other_distribution(tmp_path: Path) -> None:
    assert find_distribution(tmp_path / "a.trec.gz") is None
    assert find_distribution(tmp_path / "a.tiny") is None


def test_an_unknown_suffix_lists_the_known_ones(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tin"
    path.write_text("q;d;2\n")
    with pytest.raises(UnknownNameError, match=r"'\.tin'.*\.parquet.*\.tiny.*\.trec"):
        load_run(path)
    (next(site.glob("*.dist-info")) / "entry_points.txt").write_text(
        "[fusion_bench.formats]\ntiny = tiny_plugin.methods:BestScore\n"
    )
    with pytest.raises(ConfigError, match="'tiny' is no"):
        load_run(path)
