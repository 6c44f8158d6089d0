"""The mark ``slow``."""

from tests.conftest import SLOW, TESTS


def test_what_is_marked_slow_is_there() -> None:
    files = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py")]
    assert [name for name in SLOW if not any(file.startswith(name) for file in files)] == []
