"""No part of the password of a database or a cluster is printed, wherever it stands."""

from pathlib import Path

import pytest

from fusion_bench.tune.distribution import NOT_SHOWN, show_address, show_reason
from tests.attacks.attack import Attack
from tests.attacks.project import TUNE
from tests.attacks.runner import run_attack

#: Address → what is shown of it. Every password holds "top" and "secret".
ADDRESSES = {
    "postgresql://me:topsecret@h/db": "postgresql://h/db",
    "postgresql://me:topsecret@h:5432/db": "postgresql://h:5432/db",
    "postgresql://:topsecret@[::1]:5432/db": "postgresql://[::1]:5432/db",
    "postgresql://me:top%40secret@h/db": "postgresql://h/db",
    "postgresql://me:top:secret@h/db": "postgresql://h/db",
    "postgresql://h/db?user=me&password=topsecret": "postgresql://h/db",
    "postgresql://h/db?user=me&password=top%40secret": "postgresql://h/db",
    "postgresql://h/db?sslpassword=topsecret": "postgresql://h/db",
    "postgresql://h?topsecret": "postgresql://h",
    "postgresql://h/db?password=top@secret": "postgresql://…",
    "postgresql://me:top@secret@h/db": "postgresql://…",
    "postgresql://me:top/secret@h/db": "postgresql://…",
    "postgresql://me:top?secret@h/db": "postgresql://…",
    "postgresql://me:12?topsecret@h/db": "postgresql://…",
    "postgresql://me:top#secret@h/db": "postgresql://…",
    "postgresql://me:top secret@h/db": "postgresql://…",
    "postgresql://me:topsecret": "postgresql://…",
    "mysql+pymysql://me:topsecret@h/db": "mysql+pymysql://h/db",
    "sqlite+pysqlcipher://:topsecret@/study.db": "sqlite+pysqlcipher://…",
    "me:topsecret@h/db": "(not shown)",
    "PostgreSQL://me:topsecret@h/db": "(not shown)",
    "sqlite:///a@b/study.db": "sqlite:///a@b/study.db",
    "sqlite:///study.db?key=topsecret": "sqlite:///study.db",
    "tcp://me:topsecret@h:8786": "tcp://h:8786",
    "study.db": "(not shown)",  # a word may be the password
}


@pytest.mark.parametrize(("url", "shown"), ADDRESSES.items())
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert show_address(url) == shown


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://me:topsecret@h/db", "invalid connection option 'topsecret'"),
        ("postgresql://me:top%40secret@h/db", "no host top@secret"),
        ("postgresql://h/db?password=topsecret", "no database PASSWORD=TOPSECRET"),
        ("postgresql://h/db?x=topsecret", "terces pot"),
        ("postgresql://me:top@secret@h/db", "could not translate host name 'secret@h'"),
        ("postgresql://me:p@h/db", "no host p"),
        ("tcp://me:topsecret@h:8786", "timed out: tcp://me%3Atopsecret@h:8786"),
    ],
)
def test_a_message_that_holds_the_password_is_not_shown(url: str, reason: str) -> None:
    assert show_reason(url, reason) == NOT_SHOWN


def test_other_messages_are_shown() -> None:
    reason = "connection to server at 'h', port 5432 failed: no user 'me'"
    assert show_reason("postgresql://me:topsecret@h/db", reason) == reason
    assert show_reason("postgresql://h/db?user=me&password=topsecret", reason) == reason
    assert show_reason("tcp://topsecret@h:1", "no tcp://topsecret@h:1") == "no tcp://h:1"
    assert show_reason("topsecret", "no topsecret") == "no (not shown)"


@pytest.mark.parametrize(
    ("option", "url"),
    [
        ("--storage", "postgresql://127.0.0.1:9/db?user=me&password=topsecret"),
        ("--storage", "postgresql://me:top@secret@127.0.0.1:9/db"),
        ("--storage", "nonsense://me:topsecret@h/db"),
        ("--export-study", "me:topsecret@h"),
        ("--storage", "topsecret"),
        ("--cluster", "tcp://me:topsecret@127.0.0.1:9"),
        ("--cluster", "topsecret"),
    ],
)
def test_tune_prints_no_password(option: str, url: str, project: Path) -> None:
    said = "cluster " if option == "--cluster" else "storage "
    attack = Attack(
        url, (*TUNE, option, url), says=(said,), never=("topsec", "secret"),
        writes=("reports/**", "datasets/**"),
    )  # fmt: skip
    run_attack(attack, project)
