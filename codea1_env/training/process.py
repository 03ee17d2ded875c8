"""Global settings of a process that trains, whoever started it."""

from __future__ import annotations

import os
import warnings

from codea1_env.extras import extra

with extra("train", "training needs"):
    import huggingface_hub.constants
    import torch
    import transformers

THIRD_PARTY_SILENCE = {"TRL_EXPERIMENTAL_SILENCE": "1"}
"""TRL's own switch for its warning that rollout functions may change; the version is pinned."""


def prepare_process(threads: int = 1) -> None:
    """Global settings of a training process, for recipes: torch's threads, and no bars or notices but ours."""
    torch.set_num_threads(threads)  # for tiny models more threads only wait for each other
    os.environ.update(THIRD_PARTY_SILENCE)
    # TRL tells Hugging Face of every trainer that is made, from a thread: a run here tells nobody.
    huggingface_hub.constants.HF_HUB_DISABLE_TELEMETRY = True
    # TRL 1.16 has the old names of an argument and a property of transformers 5.24.
    warnings.filterwarnings("ignore", ".*gradient_checkpointing.* is deprecated", FutureWarning)
    transformers.utils.logging.disable_progress_bar()
