"""What rollouts and learning of a small model cost on a CPU, beside transformers' `generate` and a step like TRL's.

    python benchmarks/rollouts.py --model DIRECTORY
    python benchmarks/rollouts.py --model DIRECTORY --samples 8 --tokens 160 --repeats 3

The sides are interleaved, in CPU-seconds of one thread, since a shared machine's clock says little; ratios are of the
medians. `generate` samples the same prompts padded on the left, its own way, in the same numbers. The step that is like
TRL's has the rows of one group, each with its prompt, through PEFT's model: log-probabilities of the responses, clipped
loss, backward. Every prompt is random tokens: what they say does not change the cost, and no answer ends early. The gap
between sampler and learner is that of answers to bundled problems.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("train,lora"):
    import peft
    import torch
    import transformers

    from codea1_env.language_models.continuous import ContinuousEngine
    from codea1_env.language_models.learner import Learner
    from codea1_env.language_models.loading import LanguageModel, load
    from codea1_env.language_models.lora import Adapter
    from codea1_env.language_models.rollouts import Completion, RolloutRequest, RolloutSampling
    from codea1_env.players.chat import chat_messages
    from codea1_env.players.player import CoderRequest
    from codea1_env.problems.jsonl import bundled_problems
    from codea1_env.training.models.chat import tokens_of


QUESTIONS = 16


class Likelier:
    """Every token likelier: what a loss costs does not depend on its advantages."""

    by_token = True

    def __call__(self, rows: Sequence[int], log_probs: torch.Tensor, start: int) -> torch.Tensor:
        return -(log_probs - log_probs.detach()).exp().sum() / 1000


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def generated(model: Any, requests: Sequence[RolloutRequest], tokens: int) -> None:
    """All rows at once, as the trainer of TRL does."""
    rows = torch.tensor([request.prompt for request in requests for _ in range(request.samples)])
    with torch.no_grad():
        model.generate(
            input_ids=rows, attention_mask=torch.ones_like(rows), max_new_tokens=tokens, min_new_tokens=tokens,
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0, pad_token_id=0,
        )  # fmt: skip


def stepped(model: Any, prompt: Sequence[int], group: Sequence[Completion]) -> None:
    """Forward and backward of one group as TRL has it: a row is a prompt with its response."""
    longest = max(len(one.tokens) for one in group)
    rows = torch.tensor([[*prompt, *one.tokens, *[0] * (longest - len(one.tokens))] for one in group])
    mask = torch.tensor([[1] * len(one.tokens) + [0] * (longest - len(one.tokens)) for one in group])
    logits = model(input_ids=rows, logits_to_keep=longest + 1).logits[:, :-1].float()
    log_probs = logits.gather(2, rows[:, -longest:, None])[..., 0] - logits.logsumexp(dim=2)
    loss = -((log_probs - log_probs.detach()).exp() * mask).sum() / 1000
    loss.backward()
    model.zero_grad()


def sides(model: LanguageModel, other: Any, options: argparse.Namespace) -> dict[str, float]:
    """Median CPU-seconds by side, and the gap between sampler and learner."""
    adapter = Adapter(model.base.shape, 8, 32.0)
    engine = ContinuousEngine(model, {"seat": adapter})
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(1000, 9000, (options.prompts, options.prompt_tokens), generator=generator).tolist()
    requests = [RolloutRequest(tuple(p), options.samples, (i,), "seat") for i, p in enumerate(prompts)]
    with tempfile.TemporaryDirectory() as directory:
        adapter.save(Path(directory), model.source)
        beside = peft.PeftModel.from_pretrained(other, directory, is_trainable=True)
    learner, sampling = Learner(model.base, adapter), RolloutSampling(max_tokens=options.tokens)
    spent: dict[str, list[float]] = {"rollouts": [], "generate": [], "learner": [], "step": []}
    for _ in range(options.repeats):
        found: list[list[Completion]] = []
        spent["rollouts"].append(cpu_seconds(lambda: found.extend(engine.sample(requests, sampling))))  # noqa: B023
        spent["generate"].append(cpu_seconds(lambda: generated(beside, requests, options.tokens)))
        prompt, group = requests[0].prompt, found[0]
        tokens = [one.tokens for one in group]
        spent["learner"].append(cpu_seconds(lambda: learner.learn(prompt, tokens, Likelier())))  # noqa: B023
        spent["step"].append(cpu_seconds(lambda: stepped(beside, prompt, group)))  # noqa: B023
    medians = {side: statistics.median(values) for side, values in spent.items()}
    return medians | {"gap": gap(model, engine, learner, sampling)}


def gap(model: LanguageModel, engine: ContinuousEngine, learner: Learner, sampling: RolloutSampling) -> float:
    """Mean absolute difference of what sampler and learner say of the answers to some questions, one each. What random
    tokens are answered with is as random, and in bfloat16 rounding says five times as much of it."""
    asked = [chat_messages(CoderRequest(problem)) for problem in bundled_problems()[:QUESTIONS]]
    prompts = [tokens_of(model.tokenizer, messages) for messages in asked]
    requests = [RolloutRequest(tuple(prompt), 1, (i,), "seat") for i, prompt in enumerate(prompts)]
    gaps = []
    for prompt, (one,) in zip(prompts, engine.sample(requests, sampling), strict=True):
        (told,) = learner.log_probs(prompt, [one.tokens]).log_probs
        gaps += (told - torch.tensor(one.log_probs)).abs().tolist()
    return statistics.mean(gaps)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="a directory in Hugging Face format")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"), help="to compute in, where the "
                        "processor can (default: bfloat16)")  # fmt: skip
    parser.add_argument("--prompts", type=int, default=8, help="(default: 8)")
    parser.add_argument("--samples", type=int, default=8, help="of each prompt (default: 8)")
    parser.add_argument("--prompt-tokens", type=int, default=200, help="(default: 200)")
    parser.add_argument("--tokens", type=int, default=160, help="of each answer (default: 160)")
    parser.add_argument("--repeats", type=int, default=3, help="(default: 3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = load(options.model, dtype=options.dtype)
    other = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=model.base.dtype)
    # Else PyTorch copies the head's weights for every row of a prompt's last token: 17 GB for 64 rows in bfloat16.
    other.lm_head.register_forward_pre_hook(lambda _, given: (given[0].contiguous(),))
    found = sides(model, other, options)
    rows = options.prompts * options.samples
    print(f"{rows} rows, prompts of {options.prompt_tokens} tokens, {model.base.dtype}; tokens a CPU-second:")
    for name in ("rollouts", "generate", "learner", "step"):
        count = options.samples if name in ("learner", "step") else rows
        print(f"  {name:9} {count * options.tokens / found[name]:8.1f}   ({found[name]:.1f} CPU-seconds)")
    print(f"rollouts beside generate {found['generate'] / found['rollouts']:.2f}x, goal 4")
    print(f"learner beside the step  {found['step'] / found['learner']:.2f}x, goal 3")
    print(f"mean gap of log-probabilities, learner to sampler: {found['gap']:.4f}, goal .01")


if __name__ == "__main__":
    main()
