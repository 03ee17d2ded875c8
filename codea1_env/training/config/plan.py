"""The plan of a run before it starts (`--dry-run`): rows, tokens, memory, places, bytes on disk.

A run that cannot work is refused. Counts are exact; tokens are upper bounds; memory is an estimate
(`memory_estimate.py`). Loads neither torch nor a model.
"""

from __future__ import annotations

from collections.abc import Iterable

from codea1_env.arena.bouts import asks_all
from codea1_env.errors import ConfigurationError
from codea1_env.training.config.batches import seat_rows
from codea1_env.training.config.memory_estimate import (
    FREE,
    SeatMemory,
    cached_rows,
    longest_prompt,
    pack_tokens,
    packed_memory,
    seat_memory,
)
from codea1_env.training.config.model_shapes import shape_of
from codea1_env.training.config.placement import SEATS, SeatPlacement
from codea1_env.training.config.presets import Preset, PretrainedModel, ProblemFiles

GIB = 1 << 30
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
"""Where a run with `trainer: packed` may be, and what the plan calls it."""
GPU_SIZES = (16, 24, 80)
"""GiB of the GPUs that such a plan is held against."""


def plan_of(preset: Preset) -> str:
    """The plan, as text. Raises ConfigurationError if the run cannot work, with must, got and what to change."""
    _require_whole_groups(preset)
    if preset.trainer == "packed":
        parts = [_header(preset), _packed_rows(preset), _tokens(preset), _packed_memory(preset), _packed_disk(preset)]
        return "\n\n".join("\n".join(part) for part in parts)
    memory = {seat: seat_memory(preset, seat) for seat in SEATS}
    for seat in SEATS:
        _require_room(preset, seat, memory[seat])
    parts = [_header(preset), _rows(preset), _tokens(preset), _memory(preset, memory), _disk(preset, memory)]
    return "\n\n".join("\n".join(part) for part in [*parts, _places(preset)])


def _require_whole_groups(preset: Preset) -> None:
    for seat in SEATS:
        rows = seat_rows(preset, seat)
        for what, count in (("samples", rows.sampled), ("learns from", rows.learnt)):
            if count // rows.ranks % rows.group:
                raise ConfigurationError(
                    f"a rank of the {seat} must have whole groups of {rows.group} rows, got {count // rows.ranks} rows "
                    f"that it {what}: {count} a round on {rows.ranks} ranks; make placement.{seat}.ranks divide "
                    f"{count // rows.group}"
                )


def _require_room(preset: Preset, seat: str, memory: SeatMemory) -> None:
    placed = preset.placement.of(seat)
    if not placed.gpus_per_node:
        return
    room = int(preset.memory.gpu_gib * GIB)
    if placed.vllm == "colocate":
        tokens = longest_prompt(preset, seat) + preset.grpo.tokens(seat)
        need = tokens * shape_of(preset.model).cached_bytes(2) // placed.tensor_parallel
        if memory.room < need:
            raise ConfigurationError(
                f"vLLM of the {seat} must have room for one row of {tokens} tokens, {_gib(need)} GiB beside its "
                f"weights of {_gib(memory.sampling['vLLM weights'])}, got {_gib(memory.room)}; raise "
                f"placement.{seat}.vllm_memory ({placed.vllm_memory}) or tensor_parallel ({placed.tensor_parallel})"
            )
    if memory.peak > room:
        learns = memory.learning_total >= memory.sampling_total
        parts = memory.kept | (memory.learning if learns else memory.sampling)
        largest = max(parts, key=parts.__getitem__)
        raise ConfigurationError(
            f"a GPU of the {seat} must hold {_gib(memory.peak)} GiB while it {'learns' if learns else 'samples'}, got "
            f"{preset.memory.gpu_gib:g} (memory.gpu_gib); most is {largest} ({_gib(parts[largest])}): "
            f"{_remedy(preset, seat, placed, largest)}"
        )


def _remedy(preset: Preset, seat: str, placed: SeatPlacement, largest: str) -> str:
    """What to change where a part does not fit."""
    if largest in ("activations", "logits"):
        return f"lower memory.{seat}_rows_per_device ({seat_rows(preset, seat).per_device})"
    if largest == "cache":
        return f"set placement.{seat}.vllm: colocate, which samples as many rows at a time as fit"
    if largest in ("vLLM weights", "vLLM cache"):
        return f"lower placement.{seat}.vllm_memory ({placed.vllm_memory})"
    sharded = f"raise placement.{seat}.ranks ({placed.ranks})"
    return sharded if placed.strategy != "ddp" else f"set placement.{seat}.strategy: fsdp2, which shares it"


def _header(preset: Preset) -> list[str]:
    model, problems = preset.model, preset.problems
    named = model.pretrained if isinstance(model, PretrainedModel) else "built from nothing"
    asked = (
        f"{problems.file}, measured on {problems.held_out_file or 'its last ones'}"
        if isinstance(problems, ProblemFiles)
        else f"{problems.train} of the family {problems.family}, measured on {problems.held_out}"
    )
    shape = shape_of(model)
    trained = f"adapters of {shape.adapter_parameters(preset.lora):,}" if preset.lora.rank else "all"
    return [
        f"plan of {preset.name}: both seats, {preset.rounds} rounds, {preset.rounds * preset.round.updates} steps each",
        f"model      {named}, {shape.parameters:,} weights, trained: {trained}",
        f"problems   {asked}",
    ]


def _rows(preset: Preset) -> list[str]:
    seats = {seat: seat_rows(preset, seat) for seat in SEATS}
    replays = seats["coder"].sampled * preset.reward.replay_limit
    return [
        _title("rows a round", "coder", "tester"),
        _line("sampled", (rows.sampled for rows in seats.values())),
        _line("learnt from", (rows.learnt for rows in seats.values())),
        _line("rows a step", (rows.learnt // rows.updates for rows in seats.values())),
        _line("= ranks", (rows.ranks for rows in seats.values())),
        _line("* passes", (rows.accumulation for rows in seats.values())),
        _line("* rows a pass", (rows.per_device for rows in seats.values())),
        *_game(preset, f"; {preset.round.updates} steps of each seat", f", and {replays:,} replays"),
    ]


def _packed_rows(preset: Preset) -> list[str]:
    seats = {seat: seat_rows(preset, seat) for seat in SEATS}
    lines = [
        _title("rows a round", "coder", "tester"),
        _line("sampled", (rows.sampled for rows in seats.values())),
        _line("learnt from", (rows.learnt for rows in seats.values())),
        _line("rows a step", (rows.learnt // rows.updates for rows in seats.values())),
        _line("in groups of", (rows.group for rows in seats.values())),
    ]
    for device, name in DEVICES.items():
        lines.append(_line(f"sampled at a time, {name}", (cached_rows(preset, seat, device) for seat in SEATS)))
        lines.append(_line(f"tokens of a pass, {name}", (pack_tokens(preset, seat, device) for seat in SEATS)))
    return [*lines, *_game(preset)]


def _game(preset: Preset, steps: str = "", replays: str = "") -> list[str]:
    """What is played in a round, and what that runs."""
    shape = preset.round
    put = preset.options.put_to_tester(shape.programs, shape.attacked)
    against = "a program" if put == shape.programs else f"against {put} of them"
    asserts = seat_rows(preset, "tester").sampled * preset.reward.suite_size
    tried = asserts * (shape.programs if asks_all(preset.reward) else 1)
    return [
        f"{shape.questions} questions, {shape.programs} programs each, {shape.suites} suites {against}, "
        f"those against {shape.attacked} learnt from{steps}",
        f"the arena runs at most {asserts:,} asserts on references, {tried:,} on programs{replays}",
    ]


def _packed_memory(preset: Preset) -> list[str]:
    """GiB of the process or of its GPU, part by part, in its three phases."""
    memories = {device: packed_memory(preset, device) for device in DEVICES}
    number = "bfloat16" if preset.memory.bfloat16 else "float32"
    lines = [_title("GiB, both seats on one base, about", f"{DEVICES['cpu']}, float32", f"{DEVICES['cuda']}, {number}")]
    for part in dict.fromkeys(part for memory in memories.values() for part in memory.kept):
        lines.append(_sizes(part, (memory.kept.get(part, 0) for memory in memories.values())))
    for phase, title in (("loading", "it loads"), ("sampling", "it samples"), ("learning", "it learns")):
        for part in dict.fromkeys(part for memory in memories.values() for part in getattr(memory, phase)):
            lines.append(
                _sizes(
                    f"+ {part}, while {title}", (getattr(memory, phase).get(part, 0) for memory in memories.values())
                )
            )
        lines.append(_sizes(f"= while {title}", (memory.total(phase) for memory in memories.values())))
    need = memories["cuda"].need
    fits = ", ".join(f"{size} GiB {'suffice' if size * GIB >= need else 'do not'}" for size in GPU_SIZES)
    return [
        *lines,
        f"with {FREE:.0%} left free, a machine without a GPU must have {_gib(memories['cpu'].need)} GiB: weights and "
        "activations take half where the processor has bfloat16",
        f"and one GPU {_gib(need)} GiB: {fits}",
    ]


def _packed_disk(preset: Preset) -> list[str]:
    trained = shape_of(preset.model).adapter_parameters(preset.lora)
    kept = min(preset.keep_checkpoints, -(-preset.rounds // preset.save_rounds))
    return [
        _title("GiB on disk", "coder", "tester"),
        _sizes("a checkpoint", (12 * trained for _ in SEATS)),
        _line("* kept", (kept for _ in SEATS)),
        _sizes("+ final adapter", (4 * trained for _ in SEATS)),
        _sizes("= at most", ((12 * kept + 4) * trained for _ in SEATS)),
        f"a checkpoint every {preset.save_rounds} rounds; what was learnt since the last one is lost with a failure",
    ]


def _tokens(preset: Preset) -> list[str]:
    rows = {seat: seat_rows(preset, seat) for seat in SEATS}
    prompts = {seat: longest_prompt(preset, seat) for seat in SEATS}
    responses = {seat: preset.grpo.tokens(seat) for seat in SEATS}

    def total(seat: str, count: int) -> int:
        return count * (prompts[seat] + responses[seat])

    return [
        _title("tokens a round, at most", "coder", "tester"),
        _line("prompt", prompts.values()),
        _line("response", responses.values()),
        _line("sampled rows", (total(seat, rows[seat].sampled) for seat in SEATS)),
        _line("learnt rows", (total(seat, rows[seat].learnt) for seat in SEATS)),
    ]


def _memory(preset: Preset, memory: dict[str, SeatMemory]) -> list[str]:
    """GiB on one GPU, part by part; while it learns and while it samples."""
    place = "GPU" if preset.placement.coder.gpus_per_node else "process"
    lines = [_title(f"GiB on one {place}, about", "coder", "tester")]
    for part in dict.fromkeys(part for seat in SEATS for part in memory[seat].kept):
        lines.append(_sizes(part, (memory[seat].kept.get(part, 0) for seat in SEATS)))
    for title, phase in (("while it learns", "learning"), ("while it samples", "sampling")):
        parts = dict.fromkeys(part for seat in SEATS for part in getattr(memory[seat], phase))
        for part in parts:
            lines.append(_sizes(f"+ {part}, {title}", (getattr(memory[seat], phase).get(part, 0) for seat in SEATS)))
        lines.append(_sizes(f"= {title}", (getattr(memory[seat], f"{phase}_total") for seat in SEATS)))
    if place == "GPU":
        limit = int(preset.memory.gpu_gib * GIB)
        lines.append(_sizes("of", (limit for _ in SEATS)))
    return lines


def _disk(preset: Preset, memory: dict[str, SeatMemory]) -> list[str]:
    kept = min(preset.keep_checkpoints, -(-preset.rounds // preset.save_rounds))
    totals = [kept * memory[seat].checkpoint + memory[seat].final for seat in SEATS]
    return [
        _title("GiB on disk", "coder", "tester"),
        _sizes("a checkpoint", (memory[seat].checkpoint for seat in SEATS)),
        _line("* kept", (kept for _ in SEATS)),
        _sizes("+ final model", (memory[seat].final for seat in SEATS)),
        _sizes("= at most", totals),
        f"a checkpoint every {preset.save_rounds} rounds; what was learnt since the last one is lost with a failure",
    ]


def _places(preset: Preset) -> list[str]:
    lines = ["actors (under --engine ray; the local engine has all of it in one process)"]
    for seat in SEATS:
        placed = preset.placement.of(seat)
        devices = (
            f"{placed.ranks_per_node} on a GPU each" if placed.gpus_per_node else f"{placed.ranks_per_node} on the CPU"
        )
        nodes = "1 node" if placed.nodes == 1 else f"each of {placed.nodes} nodes"
        own = f", tensor parallel {placed.tensor_parallel}" if placed.tensor_parallel > 1 else ""
        sampler = {"off": "generate of transformers", "colocate": f"vLLM beside the trainer{own}"}.get(
            placed.vllm, f"vLLM server {placed.vllm_server}"
        )
        lines.append(
            f"{seat:10} ranks 0 to {placed.ranks - 1}: {devices}, {nodes}; {placed.strategy}; samples with {sampler}"
        )
    gpus = sum(preset.placement.of(seat).nodes * preset.placement.of(seat).gpus_per_node for seat in SEATS)
    lines.append("arena      1 actor on the CPU, with the Mistake Book and the sandbox's workers")
    lines.append(f"in all     {gpus} GPUs")
    return lines


def _title(name: str, *columns: str) -> str:
    return f"{name:38}" + "".join(f"{column:>16}" for column in columns)


def _line(name: str, numbers: Iterable[int]) -> str:
    return f"  {name:36}" + "".join(f"{number:>16,}" for number in numbers)


def _sizes(name: str, sizes: Iterable[int]) -> str:
    return f"  {name:36}" + "".join(f"{_gib(size):>16}" for size in sizes)


def _gib(size: int) -> str:
    return f"{size / GIB:,.3f}"
