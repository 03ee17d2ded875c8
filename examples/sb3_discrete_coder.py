"""SuperSuit and Stable-Baselines3: PPO learns the coder's seat of the discrete game against a fixed, attacking tester.

python examples/sb3_discrete_coder.py    # extra `sb3`: pip install '.[sb3]'
"""

from codea1_env.extras import for_script

with for_script("sb3"):
    import gymnasium
    import supersuit
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    from codea1_env import discrete


def main(timesteps: int = 6_000) -> None:
    torch.set_num_threads(1)  # for so small a network more threads only wait for each other
    pools = discrete.bundled_pools()[:8]
    game = Monitor(gymnasium.make("codea1_env/DiscreteCoder-v0", pools=pools, opponent=discrete.attacking))
    games = supersuit.stable_baselines3_vec_env_v0(game, 8)
    learner = PPO("MlpPolicy", games, n_steps=64, batch_size=128, learning_rate=3e-3, seed=0, device="cpu")
    print(f"before: the coder's mean reward is {evaluate_policy(learner, game, 200)[0]:.2f}")
    learner.learn(timesteps)
    print(f"after {timesteps} steps: {evaluate_policy(learner, game, 200)[0]:.2f}")


if __name__ == "__main__":
    main()
