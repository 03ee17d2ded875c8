"""TRL: the coder's reward as a reward function of GRPOTrainer. `python examples/trl_rewards.py` (extra `train`)

The model is tiny and untrained, so that this takes seconds: put the name of yours in its place, and take out use_cpu.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from codea1_env.extras import for_script

with for_script("train"):
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from codea1_env import Arena, LocalSandbox, bundled_problems
    from codea1_env.adapters.trl_rewards import CoderRewardFunction
    from codea1_env.configuration.presets import SMOKE
    from codea1_env.players import RandomTester
    from codea1_env.training.models.warm_start import base_model

if __name__ == "__main__":
    problems = bundled_problems()
    rows = [{"prompt": problem.question, "problem_id": problem.problem_id} for problem in problems]
    with TemporaryDirectory() as folder, Arena(LocalSandbox(workers=2)) as arena:
        arguments = GRPOConfig(
            folder, max_steps=2, num_generations=4, max_completion_length=32, use_cpu=True, bf16=False
        )
        reward = CoderRewardFunction(arena, problems, RandomTester(), suites=2)
        model = str(base_model(SMOKE, Path(folder)))
        GRPOTrainer(model, reward, args=arguments, train_dataset=Dataset.from_list(rows)).train()
