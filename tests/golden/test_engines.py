"""What systems of ours become in each engine, compared with stored texts."""

import json
from collections.abc import Callable
from pathlib import Path

from fusion_bench.experiment.dialect import dialects
from tests.engines.test_requests import REQUESTS, TRANSLATIONS, Case, translate

FOLDER = Path(__file__).parent / "engines"


def describe_case(case: Case) -> str:
    return f"# {case[0]}: {json.dumps(case[1])} {json.dumps(case[2])}"


def test_translations(compare_golden: Callable[[Path, str], None]) -> None:
    lines: list[str] = []
    for case in TRANSLATIONS:
        _, translation = translate(*case)
        lines += [describe_case(case), translation.fidelity]
        lines += [f"- {reason}" for reason in translation.reasons]
        if translation.system is not None:
            lines.append(json.dumps(translation.system.fusion.model_dump(mode="json")))
    compare_golden(FOLDER / "translations.txt", "\n".join(lines) + "\n")


def test_requests(compare_golden: Callable[[Path, str], None]) -> None:
    lines: list[str] = []
    for case in REQUESTS:
        _, translation = translate(*case)
        assert translation.system is not None
        lines.append(describe_case(case))
        files = dialects.find_plugin(case[0]).write(translation.system).files
        for name, text in files.items():
            lines += [f"==> {name}", *map(str.rstrip, text.splitlines())]
    compare_golden(FOLDER / "requests.txt", "\n".join(lines) + "\n")
