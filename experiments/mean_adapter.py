"""The mean of an adapter over the checkpoints of one run, as a directory that a player is made of.

    python experiments/mean_adapter.py RUN/coder -o MEAN
    codea1 eval --player hf:MEAN --problems humanevalplus.jsonl -o eval-mean

Both factors of each layer are averaged, entry by entry, over all `checkpoint-N` that the run has kept (Polyak and
Juditsky, 1992, average the iterates of stochastic gradient descent; Izmailov et al., 2018, the weights of networks).
That is not quite the mean of their products, but within one run, which starts from one first factor, it is near it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codea1_env import Codea1Error
from codea1_env.errors import FormatError
from codea1_env.extras import for_script
from codea1_env.terminal import Parser
from codea1_env.training.run.checkpoints import rounds_of, step_of

with for_script("train"):
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

WEIGHTS = "adapter_model.safetensors"


def main() -> None:
    parser = Parser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("seat", type=Path, help="RUN/coder or RUN/tester, with its checkpoints")
    parser.add_argument("-o", "--output", type=Path, required=True, help="new directory for the mean")
    options = parser.parse_args()
    try:
        checkpoints = sorted(options.seat.glob("checkpoint-*"), key=step_of)
        if not checkpoints:
            raise SystemExit(f"error: {options.seat} must have checkpoints, got none; name RUN/coder or RUN/tester")
        for checkpoint in checkpoints:
            rounds_of(checkpoint)  # refuses what a killed run left half-written
        weights = mean([load_file(checkpoint / WEIGHTS) for checkpoint in checkpoints])
        last = {name: (checkpoints[-1] / name).read_bytes() for name in ("adapter_config.json", "base.json")}
        options.output.mkdir(parents=True)
        for name, content in last.items():
            (options.output / name).write_bytes(content)
        save_file(weights, options.output / WEIGHTS)
    except (OSError, SafetensorError, Codea1Error) as error:
        raise SystemExit(f"error: {error}") from None
    ends = f"{checkpoints[0].name} to {checkpoints[-1].name}"
    print(f"{options.output} is the mean of {len(checkpoints)} checkpoints, {ends}")


def mean(adapters: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Entry by entry, in the tensors' own type. Raises FormatError unless all have the same tensors of one shape."""
    shapes = [{name: tuple(tensor.shape) for name, tensor in adapter.items()} for adapter in adapters]
    if any(each != shapes[0] for each in shapes):
        raise FormatError("all checkpoints must have the same tensors, got others in some")
    return {name: torch.stack([adapter[name] for adapter in adapters]).mean(0) for name in adapters[0]}


if __name__ == "__main__":
    main()
