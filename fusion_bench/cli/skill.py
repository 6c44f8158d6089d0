"""Write a skill for coding agents: what to run, how to read it, what never to do."""

from __future__ import annotations

from importlib import resources
from typing import Final

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo_written, print_json
from fusion_bench.config.options import Folder
from fusion_bench.util.files import require_folder

#: The files of the skill, the one that an agent reads first at the start.
FILES: Final = (
    "SKILL.md",
    "references/commands.md",
    "references/answers.md",
    "references/campaign.md",
)


class SkillOptions(base.JsonOptions):
    """Options of ``skill``.

    Attributes:
        out: Folder for the files. A coding agent looks in one of its own, such as
            .claude/skills/fusion-bench.
    """

    out: Folder


@base.single_command()
def command(options: SkillOptions) -> None:
    """Write a skill for coding agents: SKILL.md and what it refers to.

    The skill lists what to run for which question, what exit codes and answers mean, and what
    never to do.

    Examples:
        fusion-bench skill --out .claude/skills/fusion-bench
        fusion-bench skill --out skills/fusion-bench --json
    """
    from fusion_bench.io.outputs import write_outputs

    folder = require_folder(options.out)
    source = resources.files("fusion_bench.cli") / "skill"
    contents = {name: (source / name).read_bytes() for name in FILES}
    (folder / "references").mkdir(parents=True, exist_ok=True)
    written = write_outputs(folder, contents)
    if options.json:
        print_json({"files": list(map(str, written))})
        return
    echo_written(written)
