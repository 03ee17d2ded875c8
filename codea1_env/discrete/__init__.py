"""The discrete game: for each question a pool of programs and a pool of tests, every pair of them judged beforehand.

The coder picks a program, the tester picks K tests one after the other; rewards are those of the text game for the same
texts, without a sandbox and without a language model, tens of thousands of steps a second. Observations are arrays,
actions are indices under a mask: what tabular code and the classic libraries play. `solve.py` computes payoffs, best
responses, equilibria and exploitability.

    from codea1_env import discrete
    env = discrete.parallel_env()   # or env(), in turns; or gymnasium.make("codea1_env/DiscreteCoder-v0")

There is no Mistake Book here: a choice pays the same in every episode, which is what makes it a matrix game.
"""

from codea1_env.discrete.environment import env, parallel_env, raw_env
from codea1_env.discrete.policies import Policy, Situation, attacking, uniform
from codea1_env.discrete.pool import Pool, bundled_pools, read_pools, write_pools
from codea1_env.discrete.scoring import PairScore, PoolScorer

__all__ = [
    "PairScore",
    "Policy",
    "Pool",
    "PoolScorer",
    "Situation",
    "attacking",
    "bundled_pools",
    "env",
    "parallel_env",
    "raw_env",
    "read_pools",
    "uniform",
    "write_pools",
]
