"""SkyRL Gym: a coder that may repair its program once. `python examples/skyrl_repair.py` (extra `skyrl`)

A trainer makes the same environments from rows with `env_class: codea1-coder`, once this module's import has
registered them.
"""

from codea1_env.extras import for_script

with for_script("skyrl"):
    import skyrl_gym

    import codea1_env.adapters.skyrl  # noqa: F401  # registers the environments
    from codea1_env import bundled_problems

if __name__ == "__main__":
    for problem in bundled_problems()[:3]:
        row = {"reward_spec": {"ground_truth": problem.to_json()}, "max_turns": 2}
        env = skyrl_gym.make("codea1-coder", extras=row)
        env.init([{"role": "user", "content": problem.question}])
        first = env.step(f"def {problem.entry_point}(*_):\n    return None")
        told = [message["content"] for message in first["observations"]]
        last = first if first["done"] else env.step(f"```python\n{problem.reference_solution}\n```")
        print(problem.problem_id, told, last["reward"])
