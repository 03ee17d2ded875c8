"""The discrete game as PettingZoo plays it: `parallel_env` (both agents step together), `raw_env` and `env` (in turns).

An episode is one question: `coder_0` picks a program, then `tester_0` picks K tests, one a step
(`RewardConfig.suite_size`); both are rewarded at its end. Both agents have the same `Discrete` actions and the same
array observations, whatever the question: pools are padded. `episode.py` says what an action means.

An observation is float32 in [0, 1]: which question (one-hot), which program (one-hot), which tests have been picked,
whether it is the tester's turn, the share of its picks made, and whether it is the observer's turn. Masks are in
`infos[agent]["action_mask"]`; with `masks="observations"` observations are PettingZoo's dictionaries of `observation`
and `action_mask`.

`reset(options={"problem_id": ...})` chooses the question. Does not run anything: what is not in the pools cannot be
played. There is no Mistake Book: no reward depends on earlier episodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from codea1_env.discrete.episode import RENDER_MODES, DiscreteEpisode, Masks
from codea1_env.discrete.pool import Pool
from codea1_env.envs.arguments import own_constructor
from codea1_env.envs.faces import Face, InTurns, Together, in_order
from codea1_env.rewards.code_a1 import RewardConfig

DEFAULT_REWARDS = RewardConfig()
_METADATA = {"name": "codea1_discrete_v0", "render_modes": list(RENDER_MODES), "render_fps": 1}


class _PoolGame(Face):
    """What the two faces of the game share beyond `faces.Face`: its constructor."""

    def __init__(
        self,
        pools: Sequence[Pool] | None = None,
        *,
        rewards: RewardConfig = DEFAULT_REWARDS,
        simultaneous: bool = False,
        masks: Masks = "infos",
        render_mode: str | None = None,
    ) -> None:
        """Raises ConfigurationError for an argument outside its range.

        pools: the questions; None: the bundled pools.
        rewards: the reward's parameters, as `scoring.PoolScorer` takes them.
        simultaneous: the tester does not see the program: the matrix game that `solve.nash` is about.
        masks: where action masks go, "infos" or "observations".
        render_mode: None, "human" (prints at every reset and step), "ansi" (text) or "rgb_array" (a picture of fixed
            size, for videos; needs the extra `video`).
        """
        episode = DiscreteEpisode(pools, rewards, simultaneous, masks, render_mode)
        self._open(episode, render_mode)


@own_constructor
class raw_env(_PoolGame, InTurns):
    """The game in turns (PettingZoo's AEC interface), without wrappers. Arguments: `help(raw_env.__init__)`."""

    # The tester has K turns in a row: PettingZoo's aec_to_parallel must not pair them with turns of the coder.
    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": False}


@own_constructor
class parallel_env(_PoolGame, Together):
    """The game in 1 + K steps of both agents: the first uses the coder's action, the others the tester's.

    Both agents live to the end; the action of the one whose turn it is not is ignored and may be absent.
    Arguments: `help(parallel_env.__init__)`.
    """

    metadata: ClassVar[dict[str, Any]] = {**_METADATA, "is_parallelizable": True}


env = in_order(raw_env)
