"""TorchRL: both seats of the discrete game learn by REINFORCE. Extra `torchrl`: pip install '.[torchrl]'."""

from codea1_env.extras import for_script

with for_script("torchrl"):
    import torch
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl.modules import MLP, MaskedCategorical, ProbabilisticActor

    from codea1_env import discrete
    from codea1_env.adapters.torchrl import torchrl_env

torch.manual_seed(0)
GAMES, STEPS = 40, 9  # of an update; of a game: a program and eight tests
game = torchrl_env(discrete.parallel_env(discrete.bundled_pools()[14:17]), seed=0)
actors = {}
for seat in ("coder", "tester"):
    sizes = game.observation_spec[seat, "observation"].shape[-1], game.full_action_spec[seat, "action"].space.n
    network = TensorDictModule(MLP(*sizes, num_cells=[64]), [(seat, "observation")], [(seat, "logits")])
    keys = {"logits": (seat, "logits"), "mask": (seat, "action_mask")}
    actors[seat] = ProbabilisticActor(network, keys, [(seat, "action")], distribution_class=MaskedCategorical)
policy = TensorDictSequential(*actors.values())
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
for update in range(20):
    with torch.no_grad():
        played = game.rollout(GAMES * STEPS, policy, break_when_any_done=False).reshape(GAMES, STEPS)
    paid = {seat: played["next", seat, "reward"].sum((1, 2, 3)) for seat in actors}
    chosen = {seat: actors[seat].get_dist(played).log_prob(played[seat, "action"]).sum((1, 2)) for seat in actors}
    optimizer.zero_grad()
    sum(-((paid[seat] - paid[seat].mean()) * chosen[seat]).mean() for seat in actors).backward()
    optimizer.step()
    print(f"{update}: coder {paid['coder'].mean():.2f}, tester {paid['tester'].mean():.2f}")
