"""Compile the optional C loop of the engine; go on without it where that cannot be done."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("fusion_bench", "engine")
#: No instruction may fuse a product with a sum: both loops round alike.
FLAGS = ("-O3", "-fPIC", "-ffp-contract=off")


class NativeHook(BuildHookInterface[Any]):
    """Puts ``fusion_bench/engine/_native.*.so`` beside its source."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Compile; a failure costs speed and nothing else."""
        source = Path(self.root, FOLDER, "_native.c")
        target = source.with_name(f"_native{sysconfig.get_config_var('EXT_SUFFIX')}")
        target.unlink(missing_ok=True)
        command = _command(source, target)
        if command is None:
            self.app.display_warning("no C compiler: the engine will count in numpy")
            return
        made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if made.returncode:
            self.app.display_warning(f"not compiled, the engine will count in numpy: {made.stderr}")
            return
        build_data["artifacts"].append(f"/{FOLDER.as_posix()}/{target.name}")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _command(source: Path, target: Path) -> list[str] | None:
    """What compiles and links in one go; None where it is not wanted or there is no compiler."""
    linker = shlex.split(os.environ.get("LDSHARED") or sysconfig.get_config_var("LDSHARED") or "")
    if os.environ.get("FUSION_BENCH_NATIVE") == "0" or not linker or not shutil.which(linker[0]):
        return None
    include = f"-I{sysconfig.get_paths()['include']}"
    return [*linker, *FLAGS, include, str(source), "-o", str(target)]
