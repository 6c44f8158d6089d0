"""The versions that CI installs: complete, within the stated bounds, and nothing but versions."""

import json
import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
LINES = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = dict(line.split("==") for line in LINES if not line.startswith("#"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Extras that CI does not install.
ELSEWHERE = {"gp", "local"}


def _requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    named = [word for name, words in extras.items() if name not in ELSEWHERE for word in words]
    found = [Requirement(word) for word in [*PROJECT["dependencies"], *named]]
    return [each for each in found if each.name != PROJECT["name"]]


def test_constraints_are_versions_and_nothing_else() -> None:
    assert [
        line for line in LINES[1:] if not re.fullmatch(r"[a-z0-9._-]+==[0-9][\w.+!]*", line)
    ] == []
    assert LINES[0].startswith("#")


def test_every_direct_dependency_has_a_version_within_its_bounds() -> None:
    names = {name.replace("_", "-"): version for name, version in PINS.items()}
    wrong = [
        str(each)
        for each in _requirements()
        if not each.specifier.contains(names.get(each.name.lower().replace("_", "-"), "0"))
    ]
    assert wrong == []


def test_renewed_constraints_leave_out_the_project_and_its_installers() -> None:
    path = ROOT / ".ci" / "renew_constraints.py"
    spec = spec_from_file_location("renew_constraints", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    listed = [("Zeta", "2"), ("alpha", "1.0"), ("pip", "23"), (PROJECT["name"], "0.1.0")]
    text = json.dumps([{"name": name, "version": version} for name, version in listed])
    assert module.list_versions(text) == ["alpha==1.0", "zeta==2"]
