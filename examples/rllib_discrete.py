"""RLlib: PPO learns both seats of the discrete game at once, under RLlib's own masking of actions.

python examples/rllib_discrete.py    # extra `rllib`: pip install '.[rllib]'
"""

from codea1_env.extras import for_script

with for_script("rllib"):
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module import MultiRLModuleSpec, RLModuleSpec
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

    from codea1_env import discrete
    from codea1_env.adapters.rllib import DiscreteMultiAgentEnv


def main(iterations: int = 6) -> None:
    masked = {seat: RLModuleSpec(module_class=ActionMaskingTorchRLModule) for seat in ("coder_0", "tester_0")}
    config = PPOConfig().environment(DiscreteMultiAgentEnv, env_config={"pools": discrete.bundled_pools()[14:17]})
    config.multi_agent(policies=set(masked), policy_mapping_fn=lambda seat, *_, **__: seat)
    config.rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=masked))
    config.env_runners(num_env_runners=0).debugging(seed=0)
    config.training(train_batch_size_per_learner=900, minibatch_size=300, num_epochs=10, lr=1e-3)
    learner = config.build_algo()
    for iteration in range(iterations):
        paid = learner.train()["env_runners"]["agent_episode_returns_mean"]
        print(f"{iteration}: coder {paid['coder_0']:.2f}, tester {paid['tester_0']:.2f}")
    learner.stop()


if __name__ == "__main__":
    main()
