"""One response as tokens: what both kinds of trainers sample."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.language_models.rollouts import Finish


@dataclass(frozen=True, slots=True)
class SampledResponse:
    """One response, as tokens."""

    tokens: list[int]
    logprobs: list[float] | None
    """Of the tokens, by the engine that drew them: vLLM tells, and TRL then wants them; `generate` does not: None."""
    finish: Finish | None = None
    """Why it ended; None where the engine does not say."""
