"""The plan of a run before it starts (`--dry-run`): rows, tokens, memory, places, bytes on disk.

It shows the models that the recipe has (`batches.py`). A run that cannot work is refused. Counts are exact; tokens are
upper bounds; memory is an estimate (`memory_estimate.py`). Loads neither torch nor a model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from codea1_env.arena.bouts import asks_all
from codea1_env.configuration import memory_estimate
from codea1_env.configuration.batches import CODE_A1, Roles, SeatRows, roles_of, rows_of, seat_rows
from codea1_env.configuration.model_sections import PretrainedModel, shape_of
from codea1_env.configuration.placement import SEATS, SeatPlacement
from codea1_env.configuration.presets import Preset
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.errors import ConfigurationError

GIB = 1 << 30
DEVICES = {"cpu": "CPU", "cuda": "GPU"}
"""Where a run with `trainer: packed` may be, and what the plan calls it."""
GPU_SIZES = (16, 24, 80)
"""GiB of the GPUs that such a plan is held against."""


def plan_of(preset: Preset, recipe: str = CODE_A1) -> str:
    """The plan of a recipe, as text. Raises ConfigurationError, with what to change, if the run cannot work."""
    roles = roles_of(recipe)
    if roles.learns == SEATS:
        roles = dataclasses.replace(roles, plays=preset.seats, learns=preset.seats)
    rows = rows_of(preset, roles)
    parts = [_header(preset, roles)]
    if rows:
        _require_whole_groups(rows)
        parts += [_rows(preset, roles, rows), _tokens(preset, rows)]
    if rows and preset.trainer == "packed":
        trained = shape_of(preset.model).adapter_parameters(preset.lora)
        files = dict.fromkeys(roles.learns, (12 * trained, 4 * trained))
        parts += [_packed_memory(preset, roles), _disk(preset, files, "adapter")]
    elif rows:
        memory = {seat: _memory_of(preset, seat, roles) for seat in rows}
        for seat in rows:
            _require_room(preset, seat, memory[seat])
        files = {seat: (memory[seat].checkpoint, memory[seat].final) for seat in roles.learns}
        parts += [_memory(preset, memory), _disk(preset, files, "model"), _places(preset, roles)]
    return "\n\n".join("\n".join(part) for part in parts)


def _memory_of(preset: Preset, seat: str, roles: Roles) -> memory_estimate.Memory:
    """What a seat that does not learn holds is weights and what sampling takes."""
    memory = memory_estimate.seat_memory(preset, seat)
    if seat in roles.learns:
        return memory
    kept = memory.kept | {"optimizer": 0, "reference": 0}
    return dataclasses.replace(memory, kept=kept, learning=dict.fromkeys(memory.learning, 0))


def _require_whole_groups(rows: Mapping[str, SeatRows]) -> None:
    for seat, of_seat in rows.items():
        if seat == "player":  # its groups are of several sizes, and its trainer divides them
            continue
        for what, count in (("samples", of_seat.sampled), ("learns from", of_seat.learnt)):
            if count // of_seat.ranks % of_seat.group:
                raise ConfigurationError(
                    f"a rank of the {seat} must have whole groups of {of_seat.group} rows, got "
                    f"{count // of_seat.ranks} rows that it {what}: {count} a round on {of_seat.ranks} ranks; make "
                    f"placement.{seat}.ranks divide {count // of_seat.group}"
                )


def _require_room(preset: Preset, seat: str, memory: memory_estimate.Memory) -> None:
    placed = preset.placement.of(seat)
    if not placed.gpus_per_node:
        return
    room = int(preset.memory.gpu_gib * GIB)
    if placed.vllm == "colocate":
        tokens = memory_estimate.longest_prompt(preset, seat) + preset.grpo.tokens(seat)
        need, cache = (
            tokens * shape_of(preset.model).cached_bytes(2) // placed.tensor_parallel,
            memory.sampling["vLLM cache"],
        )
        if cache < need:
            raise ConfigurationError(
                f"vLLM of the {seat} must have room for one row of {tokens} tokens, {_gib(need)} GiB beside its "
                f"weights of {_gib(memory.sampling['vLLM weights'])}, got {_gib(cache)}; raise "
                f"placement.{seat}.vllm_memory ({placed.vllm_memory}) or tensor_parallel ({placed.tensor_parallel})"
            )
    if memory.peak > room:
        learns = memory.total("learning") >= memory.total("sampling")
        parts = memory.kept | (memory.learning if learns else memory.sampling)
        largest = max(parts, key=parts.__getitem__)
        raise ConfigurationError(
            f"a GPU of the {seat} must hold {_gib(memory.peak)} GiB while it {'learns' if learns else 'samples'}, got "
            f"{preset.memory.gpu_gib:g} (memory.gpu_gib); most is {largest} ({_gib(parts[largest])}): "
            f"{_remedy(preset, seat, placed, largest)}"
        )


def _remedy(preset: Preset, seat: str, placed: SeatPlacement, largest: str) -> str:
    if largest in ("activations", "logits"):
        return f"lower memory.{seat}_rows_per_device ({seat_rows(preset, seat).per_device})"
    if largest == "cache":
        return f"set placement.{seat}.vllm: colocate, which samples as many rows at a time as fit"
    if largest in ("vLLM weights", "vLLM cache"):
        return f"lower placement.{seat}.vllm_memory ({placed.vllm_memory})"
    sharded = f"raise placement.{seat}.ranks ({placed.ranks})"
    return sharded if placed.strategy != "ddp" else f"set placement.{seat}.strategy: fsdp2, which shares it"


def _header(preset: Preset, roles: Roles) -> list[str]:
    model, problems = preset.model, preset.problems
    named = model.pretrained if isinstance(model, PretrainedModel) else "built from scratch"
    asked = (
        f"{problems.file}, measured on {problems.held_out_file or 'its last ones'}"
        if isinstance(problems, ProblemFiles)
        else f"{problems.train} of the family {problems.family}, measured on {problems.held_out}"
    )
    shape = shape_of(model)
    trained = f"adapters of {shape.adapter_parameters(preset.lora):,}" if preset.lora.rank else "all"
    steps = f", {preset.rounds} rounds, {preset.rounds * preset.round.updates} steps" if roles.learns else ""
    return [
        f"plan of {preset.name}: {roles.told}{steps}{' each' if len(roles.learns) > 1 else ''}",
        f"model      {named}, {shape.parameters:,} weights, trained: {trained if roles.learns else 'none'}",
        f"problems   {asked}",
    ]


def _rows(preset: Preset, roles: Roles, rows: Mapping[str, SeatRows]) -> list[str]:
    lines = [
        _title("rows a round", *rows),
        _line("sampled", (each.sampled for each in rows.values())),
        _line("learnt from", (each.learnt for each in rows.values())),
        _line("rows a step", (each.learnt // each.updates for each in rows.values())),
    ]
    if preset.trainer == "trl":
        programs = preset.round.questions * (preset.round.programs + _past(preset)[0])
        replays = programs * preset.reward.replay_limit if roles.has_book else 0
        updates = preset.round.updates
        steps = f"; {updates} step{'s' if updates > 1 else ''} per learning model"
        return [
            *lines,
            _line("= ranks", (each.ranks for each in rows.values())),
            _line("* passes", (each.accumulation for each in rows.values())),
            _line("* rows a pass", (each.per_device for each in rows.values())),
            *_game(preset, roles, steps, f", and {replays:,} replays" if replays else ""),
        ]
    if "player" not in rows:
        lines.append(_line("in groups of", (each.group for each in rows.values())))
    for device, name in DEVICES.items():
        lines.append(
            _line(f"sampled at a time, {name}", (memory_estimate.cached_rows(preset, seat, device) for seat in rows))
        )
        lines.append(
            _line(f"tokens of a pass, {name}", (memory_estimate.pack_tokens(preset, seat, device) for seat in rows))
        )
    return [*lines, *_game(preset, roles)]


def _game(preset: Preset, roles: Roles, steps: str = "", replays: str = "") -> list[str]:
    shape = preset.round
    if not roles.has_suites:
        suites = seat_rows(preset, "tester").learnt
        programs = f"{shape.programs} programs each, tried on the question's tests"
        return [f"{shape.questions} questions, {programs if roles.plays else f'{suites} suites'}{steps}"]
    put = preset.options.put_to_tester(shape.programs, shape.attacked)
    against = "a program" if put == shape.programs else f"against {put} of them"
    learnt = f"; the suites against {shape.attacked} train the tester" if roles.learns != ("coder",) else ""
    testers = len(preset.seats) - 1
    old, by_old = _past(preset)
    present, past = testers * put * shape.suites + shape.programs * by_old, old * shape.suites
    asserts = shape.questions * preset.reward.suite_size
    tried = present * shape.programs + past * old if asks_all(preset.reward) else present + past
    return [
        f"{shape.questions} questions, {shape.programs} programs each, {testers * shape.suites} suites "
        f"{against}{learnt}{steps}",
        f"the arena runs at most {asserts * (present + past):,} asserts on references, {asserts * tried:,} on "
        f"programs{replays}",
        *[f"of these, of the past and in no row above: {old} programs a question, {by_old} suites a program"]
        * bool(old or by_old),
    ]


def _past(preset: Preset) -> tuple[int, int]:
    """Old programs of a question that the tester attacks at most, and an old tester's suites against each program."""
    shape, options = preset.round, preset.options
    return options.past(shape.programs) + options.tester_book, options.past(shape.suites)


def _packed_memory(preset: Preset, roles: Roles) -> list[str]:
    """GiB of the process or of its GPU, part by part, in its three phases."""
    memories = {device: memory_estimate.packed_memory(preset, device, roles) for device in DEVICES}
    number = "bfloat16" if preset.memory.bfloat16 else "float32"
    lines = [_title("GiB, all on one base, about", f"{DEVICES['cpu']}, float32", f"{DEVICES['cuda']}, {number}")]
    lines += _by_phase([*memories.values()], loading="it loads", sampling="it samples", learning="it learns")
    need = memories["cuda"].need
    fits = ", ".join(f"{size} GiB {'is enough' if size * GIB >= need else 'is too small'}" for size in GPU_SIZES)
    return [
        *lines,
        f"with {memory_estimate.FREE:.0%} left free, a machine without a GPU must have "
        f"{_gib(memories['cpu'].need)} GiB; in bfloat16, if the processor has it, weights and activations take half",
        f"one GPU must have {_gib(need)} GiB: {fits}",
    ]


def _tokens(preset: Preset, rows: Mapping[str, SeatRows]) -> list[str]:
    prompts = {seat: memory_estimate.longest_prompt(preset, seat) for seat in rows}
    responses = {seat: preset.grpo.tokens(seat) for seat in rows}

    def total(seat: str, count: int) -> int:
        return count * (prompts[seat] + responses[seat])

    return [
        _title("tokens a round, at most", *rows),
        _line("prompt", prompts.values()),
        _line("response", responses.values()),
        _line("sampled rows", (total(seat, each.sampled) for seat, each in rows.items())),
        _line("learnt rows", (total(seat, each.learnt) for seat, each in rows.items())),
    ]


def _memory(preset: Preset, memory: Mapping[str, memory_estimate.Memory]) -> list[str]:
    """GiB on one GPU, part by part; while it learns and while it samples."""
    place = "GPU" if any(preset.placement.of(seat).gpus_per_node for seat in memory) else "process"
    lines = [_title(f"GiB on one {place}, about", *memory)]
    lines += _by_phase([*memory.values()], learning="it learns", sampling="it samples")
    if place == "GPU":
        limit = int(preset.memory.gpu_gib * GIB)
        lines.append(_sizes("of", (limit for _ in memory)))
    return lines


def _by_phase(memories: Sequence[memory_estimate.Memory], **phases: str) -> Iterator[str]:
    """What is always there, then for each phase what comes to it, and the sum. A column each."""
    for part in dict.fromkeys(part for memory in memories for part in memory.kept):
        yield _sizes(part, (memory.kept.get(part, 0) for memory in memories))
    for phase, title in phases.items():
        for part in dict.fromkeys(part for memory in memories for part in getattr(memory, phase)):
            yield _sizes(f"+ {part}, while {title}", (getattr(memory, phase).get(part, 0) for memory in memories))
        yield _sizes(f"= while {title}", (memory.total(phase) for memory in memories))


def _disk(preset: Preset, files: Mapping[str, tuple[int, int]], what: str) -> list[str]:
    """`files`: bytes of a checkpoint and of the final model or adapter, by seat."""
    kept, sizes = min(preset.keep_checkpoints, -(-preset.rounds // preset.save_rounds)), files.values()
    options = preset.options
    snapshots = preset.rounds // options.opponent_every if options.opponents != "latest" else 0
    return [
        _title("GiB on disk", *files),
        _sizes("a checkpoint", (checkpoint for checkpoint, _ in sizes)),
        _line("* kept", (kept for _ in sizes)),
        _sizes(f"+ final {what}", (final for _, final in sizes)),
        *[_sizes(f"+ {snapshots} snapshots", (snapshots * final for _, final in sizes))] * bool(snapshots),
        _sizes("= at most", (kept * checkpoint + (1 + snapshots) * final for checkpoint, final in sizes)),
        f"a checkpoint every {preset.save_rounds} rounds; a failure loses the rounds after the last one",
    ]


def _places(preset: Preset, roles: Roles) -> list[str]:
    lines = ["actors (with --engine ray; the local engine runs all in one process)"]
    gpus = 0
    for seat in roles.seats:
        placed = preset.placement.of(seat)
        gpus += placed.nodes * placed.gpus_per_node
        devices = (
            f"{placed.ranks_per_node} on a GPU each" if placed.gpus_per_node else f"{placed.ranks_per_node} on the CPU"
        )
        nodes = "1 node" if placed.nodes == 1 else f"each of {placed.nodes} nodes"
        own = f", tensor parallel {placed.tensor_parallel}" if placed.tensor_parallel > 1 else ""
        sampler = {"off": "transformers' generate", "colocate": f"vLLM beside the trainer{own}"}.get(
            placed.vllm, f"vLLM server {placed.vllm_server}"
        )
        lines.append(
            f"{seat:10} ranks 0 to {placed.ranks - 1}: {devices}, {nodes}; {placed.strategy}; samples with {sampler}"
        )
    book = "the Mistake Book and " if roles.has_book else ""
    lines.append(f"arena      in the first process, with {book}the sandbox's workers")
    lines.append(f"total      {gpus} GPUs")
    return lines


def _title(name: str, *columns: str) -> str:
    return f"{name:38}" + "".join(f"{column:>16}" for column in columns)


def _line(name: str, numbers: Iterable[int]) -> str:
    return f"  {name:36}" + "".join(f"{number:>16,}" for number in numbers)


def _sizes(name: str, sizes: Iterable[int]) -> str:
    return f"  {name:36}" + "".join(f"{_gib(size):>16}" for size in sizes)


def _gib(size: int) -> str:
    return f"{size / GIB:,.3f}"
