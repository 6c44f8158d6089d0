"""Write the versions of all packages that a new environment for development gets.

``python .ci/renew_constraints.py FILE`` installs the package with the extras of CI into an empty
virtual environment, unconstrained, and writes ``name==version`` of what came, and nothing else: no
index, no host, no path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = "dev,browser"
HEAD = "# Versions that the tests ran with. Renew them with `make constraints`.\n"


def list_versions(packages: str) -> list[str]:
    """``name==version`` of each entry of pip's JSON list but this project; sorted by name.

    Args:
        packages: What ``pip list --format=json`` prints.
    """
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    pairs = {entry["name"].lower(): entry["version"] for entry in json.loads(packages)}
    return [f"{name}=={pairs[name]}" for name in sorted(pairs) if name not in {own, "pip"}]


def main(target: Path) -> None:
    """Install into an empty environment, and write what it then holds."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [str(Path(folder, "bin", "python")), "-m", "pip", "--disable-pip-version-check"]
        free = {key: value for key, value in os.environ.items() if "CONSTRAINT" not in key}
        words = ["install", "--quiet", "--no-compile", f"{ROOT}[{EXTRAS}]", *build["requires"]]
        subprocess.run([*pip, *words], check=True, env=free)  # noqa: S603 - our own command
        listed = subprocess.run(  # noqa: S603
            [*pip, "list", "--format=json"], check=True, env=free, capture_output=True, text=True
        )
    target.write_text(HEAD + "".join(f"{line}\n" for line in list_versions(listed.stdout)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
