"""TRL's GRPOTrainer plays the coder's seat through a tool: a program is handed in, fails tests, and is repaired.

python examples/trl_environment.py MODEL    # a model that calls tools, such as Qwen/Qwen3-0.6B (extra `train`)
"""

import sys

from codea1_env.extras import for_script

with for_script("train"):
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from codea1_env import Arena, LocalSandbox, bundled_problems
    from codea1_env.adapters.trl_environments import CoderSeat
    from codea1_env.players import GoldenTester


def main(model: str, output: str = "runs/trl", steps: int = 100, tokens: int = 1024) -> None:
    problems = bundled_problems()
    asked = [{"prompt": [{"role": "user", "content": ""}], "problem_id": each.problem_id} for each in problems]
    sizes = {"max_steps": steps, "max_completion_length": tokens, "num_generations": 8}
    cuda = torch.cuda.is_available()
    settings = GRPOConfig(output, **sizes, bf16=cuda, use_cpu=not cuda, logging_steps=1, report_to=[])
    with Arena(LocalSandbox(workers=2)) as arena:
        seat = lambda: CoderSeat(arena, problems, GoldenTester(), attempts=2)  # noqa: E731  # one a rollout
        GRPOTrainer(model, args=settings, train_dataset=Dataset.from_list(asked), environment_factory=seat).train()


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: python examples/trl_environment.py MODEL")
