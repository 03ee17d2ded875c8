"""Where each seat of a run lives: nodes, GPUs, ranks, how its model is sharded, and what generates for it.

Plain data, checked before anything heavy is imported; the Ray engine makes actors of it. Does not know whether a
cluster has what is asked for, nor whether a model fits: that is the plan's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from codea1_env.checks import require
from codea1_env.configuration.sections import Section, choice, real, text, whole
from codea1_env.errors import ConfigurationError

STRATEGIES = ("ddp", "fsdp2", "deepspeed")
GENERATORS = ("off", "colocate", "server")
SEATS = ("coder", "tester")


def role_of(seat: str) -> str:
    """coder, tester or player: several testers are called tester, tester_1, tester_2, ..."""
    return seat.partition("_")[0]


@dataclass(frozen=True, slots=True)
class SeatPlacement(Section):
    """The placement of one seat. The default is one process on a CPU, which is all that the local engine supports."""

    nodes: int = whole(1, 1, 1024)
    """Machines, 1 to 1024. The seat's ranks are spread over them evenly."""
    gpus_per_node: int = whole(0, 0, 64)
    """GPUs of each machine that the seat has to itself, 0 to 64; 0: it trains on the CPU."""
    ranks: int = whole(1, 1, 8192)
    """Processes that train, 1 to 8192, a multiple of `nodes`. With GPUs there is one per GPU: nodes * gpus_per_node."""
    strategy: str = choice("ddp", STRATEGIES)
    """ddp: a whole model on every rank. fsdp2, deepspeed (ZeRO stage 3): sharded over the ranks, on GPUs only."""
    vllm: str = choice("off", GENERATORS)
    """off: transformers generates. colocate: vLLM beside the trainer on the same GPUs, asleep while it learns.
    server: a running `trl vllm-serve` at `vllm_server`."""
    tensor_parallel: int = whole(1, 1, 64)
    """Ranks that share one model in colocated vLLM, 1 to 64; divides the ranks of a node. A server has its own."""
    vllm_memory: float = real(0.3, 0.01, 1.0)
    """Share of a GPU's memory that colocated vLLM may take, above 0 to 1."""
    vllm_server: str = text("")
    """HOST:PORT of this seat's own server; for vllm: server."""
    vllm_group_port: int = whole(51216, 1, 65535)
    """Port over which weights go to the server, 1 to 65535; another one for each seat."""
    memory_gb: float = real(0.0, 0.0, 65_536.0)
    """GiB of main memory that the cluster reserves for each rank, 0 to 65536; 0: it reserves none."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        self._check_ranks()
        self._check_generator()

    def _check_ranks(self) -> None:
        gpus = self.nodes * self.gpus_per_node
        must = f"be one per GPU, {self.nodes} nodes * {self.gpus_per_node} = {gpus}"
        require(not gpus or self.ranks == gpus, "ranks", must, self.ranks)
        require(self.ranks % self.nodes == 0, "ranks", f"be a multiple of nodes ({self.nodes})", self.ranks)
        if self.strategy != "ddp" and not self.gpus_per_node:
            raise ConfigurationError(
                f"strategy must be ddp on the CPU, where sharding is silently ignored, got {self.strategy}; "
                "set gpus_per_node, or take ddp"
            )

    def _check_generator(self) -> None:
        if self.vllm != "colocate" and self.tensor_parallel != 1:
            raise ConfigurationError(
                f"tensor_parallel must be 1 where vLLM is not colocated, got {self.tensor_parallel}; "
                "a server is told its own when it is started"
            )
        divides, must = (
            self.ranks_per_node % self.tensor_parallel == 0,
            f"divide the ranks of a node ({self.ranks_per_node})",
        )
        require(divides, "tensor_parallel", must, self.tensor_parallel)
        has_gpus, must = (
            self.vllm != "server" or self.gpus_per_node > 0,
            "be at least 1 for vllm: server (weights go by NCCL)",
        )
        require(has_gpus, "gpus_per_node", must, self.gpus_per_node)
        if (self.vllm == "server") != bool(self.vllm_server):
            raise ConfigurationError(
                f"vllm_server must be HOST:PORT for vllm: server and empty otherwise, got {self.vllm_server!r} "
                f"for vllm: {self.vllm}"
            )
        if self.vllm_server:
            host, _, port = self.vllm_server.rpartition(":")
            is_address = bool(host) and port.isdecimal() and 1 <= int(port) <= 65535
            require(is_address, "vllm_server", "be HOST:PORT", self.vllm_server)

    @property
    def ranks_per_node(self) -> int:
        return self.ranks // self.nodes

    @property
    def is_one_process_on_cpu(self) -> bool:
        return self.ranks == 1 and not self.gpus_per_node


@dataclass(frozen=True, slots=True)
class Placement:
    """Both seats, each with processes of its own."""

    coder: SeatPlacement = field(default_factory=SeatPlacement)
    tester: SeatPlacement = field(default_factory=SeatPlacement)

    def __post_init__(self) -> None:
        servers = [seat.vllm_server for seat in (self.coder, self.tester) if seat.vllm_server]
        ports = [seat.vllm_group_port for seat in (self.coder, self.tester) if seat.vllm_server]
        if len(set(servers)) != len(servers) or len(set(ports)) != len(ports):
            raise ConfigurationError(
                f"each seat must have a vllm_server and a vllm_group_port of its own, got {servers} and {ports}"
            )

    def of(self, seat: str) -> SeatPlacement:
        """The placement of coder, tester, or player, which is the one model of self-play and has the coder's."""
        placement: SeatPlacement = getattr(self, "coder" if seat == "player" else role_of(seat))
        return placement


def trainer_arguments(placed: SeatPlacement) -> dict[str, Any]:
    """The arguments of TRL's configuration that follow from a seat's placement: device, sharding, generator."""
    on_gpus = placed.gpus_per_node > 0
    told: dict[str, Any] = {
        "use_cpu": not on_gpus,
        "bf16": on_gpus,  # autocast; the weights themselves stay float32, or steps of 1e-6 would be lost in rounding
        "gradient_checkpointing": on_gpus and placed.strategy != "fsdp2",  # FSDP has its own
        "dataloader_pin_memory": on_gpus,
    }
    if placed.strategy == "ddp" and placed.ranks > 1:
        told["ddp_find_unused_parameters"] = False
    elif placed.strategy == "fsdp2":
        told["fsdp"] = True
        told["fsdp_config"] = {
            "version": 2,
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "reshard_after_forward": True,
            "activation_checkpointing": True,
            "state_dict_type": "FULL_STATE_DICT",
        }
    elif placed.strategy == "deepspeed":
        told["deepspeed"] = {
            "zero_optimization": {
                "stage": 3,
                "overlap_comm": True,
                "contiguous_gradients": True,
                "stage3_gather_16bit_weights_on_model_save": True,
            },
            "bf16": {"enabled": "auto"},
            "gradient_accumulation_steps": "auto",
            "train_micro_batch_size_per_gpu": "auto",
            "train_batch_size": "auto",
            "gradient_clipping": "auto",
        }
    told["use_vllm"] = placed.vllm != "off"
    if placed.vllm == "server":
        told |= {
            "vllm_mode": "server",
            "vllm_server_base_url": f"http://{placed.vllm_server}",
            "vllm_group_port": placed.vllm_group_port,
        }
    elif placed.vllm == "colocate":
        told |= {
            "vllm_mode": "colocate",
            "vllm_enable_sleep_mode": on_gpus,
            "vllm_tensor_parallel_size": placed.tensor_parallel,
            "vllm_gpu_memory_utilization": placed.vllm_memory,
        }
    return told
