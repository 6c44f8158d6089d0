"""The file that ``fusion-bench judge --llm`` reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from fusion_bench.config.files.yaml_source import read_yaml
from fusion_bench.config.models import StrictModel, parse_model
from fusion_bench.errors import ConfigError
from fusion_bench.judge.llm.model import JudgeModel
from fusion_bench.judge.llm.prompt import SCALE, JudgePrompt, read_rubric
from fusion_bench.rerank.config import merge_settings
from fusion_bench.rerank.settings import RerankSettings

#: A name that a file can have.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_SAMPLES: Final = 100


class ExampleSettings(StrictModel):
    """Which grades of people the prompt shows.

    Attributes:
        judge: One of ``judges`` of dataset.yaml, or ``qrels``; people, in any case.
        per_grade: Examples of each grade.
        seed: Of the draw.
    """

    judge: str = "qrels"
    per_grade: Annotated[int, Field(ge=1, le=20)] = 1
    seed: Annotated[int, Field(ge=0)] = 0


class LlmJudgeConfig(StrictModel):
    """What ``judge.yaml`` says.

    Attributes:
        judges: Models by the name of the judge; each gives a file of grades.
        rubric: Text file with the prompt, beside this file; None = the built-in one.
        scale: Grade → what it means.
        characters: Longer passages are cut there.
        examples: Which grades of people the prompt shows; None = none.
        samples: Answers for each pair.
        combine: How they become one grade: the most frequent one, of equals the least; or the grade
            that is nearest to the mean, of equals the least.
        attempts: How often a malformed answer is asked for, the first time included.
        settings: Timeouts, retries and breaker, as for rerankers.
    """

    judges: Annotated[dict[str, JudgeModel], Field(min_length=1)]
    rubric: Path | None = None
    scale: Annotated[dict[int, str], Field(min_length=2)] = Field(default_factory=lambda: {**SCALE})
    characters: Annotated[int, Field(ge=1)] = 8000
    examples: ExampleSettings | None = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 1
    combine: Literal["majority", "mean"] = "majority"
    attempts: Annotated[int, Field(ge=1, le=10)] = 2
    settings: dict[str, Any] = Field(default_factory=dict)

    @field_validator("judges")
    @classmethod
    def _check_names(cls, judges: dict[str, JudgeModel]) -> dict[str, JudgeModel]:
        for name in judges:
            if NAME.fullmatch(name) is None:
                raise ValueError(
                    f"{name[:80]!r} names no file: use letters, digits, '.', '_' and '-', at most "
                    "64, the first one a letter or digit"
                )
        return judges

    @field_validator("scale")
    @classmethod
    def _sort_scale(cls, scale: dict[int, str]) -> dict[int, str]:
        if min(scale) < 0:
            raise ValueError(f"grade {min(scale)}: grades are whole numbers from 0")
        return dict(sorted(scale.items()))

    @model_validator(mode="after")
    def _check_samples(self) -> LlmJudgeConfig:
        deterministic = [name for name, model in self.judges.items() if model.temperature == 0]
        if self.samples > 1 and deterministic:
            raise ValueError(
                f"samples {self.samples} with temperature 0 of {deterministic[0]!r} are one answer "
                "many times: give it a temperature, such as 0.7, or samples 1"
            )
        return self

    def make_prompt(self, folder: Path) -> JudgePrompt:
        """The prompt of all judges.

        Args:
            folder: Where the file of the configuration lies; paths are relative to it.

        Raises:
            ConfigError: The rubric cannot be used.
        """
        path = None if self.rubric is None else folder / self.rubric
        try:
            return JudgePrompt(read_rubric(path), tuple(self.scale.items()), self.characters)
        except ValueError as error:
            raise ConfigError(f"rubric: {error}") from None

    def resolve_settings(self) -> RerankSettings:
        """Long timeouts, strict, with the given settings in place of these."""
        return merge_settings("bench", self.settings)


def read_judge_config(path: Path) -> LlmJudgeConfig:
    """Read a configuration.

    Raises:
        ConfigError: It breaks a rule; names file, line and path.
    """
    source = read_yaml(path)
    config = parse_model(LlmJudgeConfig, source.data, source.where)
    config.make_prompt(path.parent)
    merge_settings("bench", config.settings, source.where(("settings",)))
    return config
