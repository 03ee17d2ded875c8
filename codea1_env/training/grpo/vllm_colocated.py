"""What must be done around the building of a trainer, where vLLM shares its process.

Does not start a server, and does not promise equal samples from two generators.
"""

from __future__ import annotations

import os
from typing import Any

from codea1_env.extras import extra
from codea1_env.training.grpo.vllm_cpu import make_updates_reach_vllm

with extra("train", "training needs"):
    from accelerate.utils import set_seed


def before_building(arguments: Any) -> None:
    """Must be called before a trainer is built with these GRPOConfig arguments."""
    if _is_colocated(arguments) and arguments.use_cpu:
        make_updates_reach_vllm()


def after_building(trainer: Any) -> None:
    """Must be called once a trainer is built: colocated vLLM has seeded the process, and not with the run's seed."""
    if _is_colocated(trainer.args):
        if trainer.accelerator.num_processes == 1:
            # TRL told vLLM of a world of one through these; the next seat's trainer would look for its other ranks.
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
                os.environ.pop(name, None)
        # Ranks that share one copy of the model must draw the same samples.
        set_seed(trainer.args.seed + trainer.accelerator.process_index // trainer.args.vllm_tensor_parallel_size)


def _is_colocated(arguments: Any) -> bool:
    return bool(arguments.use_vllm and arguments.vllm_mode == "colocate")
