import pytest

from fusion_bench import errors
from fusion_bench.errors import (
    ConfigError,
    FusionBenchError,
    MissingExtraError,
    UnknownNameError,
)


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error")])
def test_every_error_is_one_of_ours_and_drawn_in_the_tree(name: str) -> None:
    assert issubclass(getattr(errors, name), FusionBenchError)
    assert name in (errors.__doc__ or "")


def test_a_name_nearly_right_is_suggested() -> None:
    error = UnknownNameError("run", "bm52", ["dense", "bm25"], where="a.yaml: systems.x")
    assert isinstance(error, ConfigError)
    text = str(error)
    assert text.startswith("a.yaml: systems.x: unknown run 'bm52'; ")
    assert text.endswith(" 'bm25'? (known: dense, bm25)")


def test_a_name_far_off_is_not() -> None:
    assert str(UnknownNameError("run", "x", ["bm25"])) == "unknown run 'x' (known: bm25)"
    assert str(UnknownNameError("run", "x", [])) == "unknown run 'x' (known: none)"


def test_a_missing_extra_says_how_to_get_it() -> None:
    text = str(MissingExtraError("httpx", extra="remote", purpose="asking cohere"))
    assert text.startswith("asking cohere needs the package 'httpx'")
    assert text.endswith(": pip install 'rank-fusion-bench[remote]'")
