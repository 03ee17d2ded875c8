"""Prints what seeded runs of the turn-based environment and of both views show, for a test to compare processes."""

import json

from codea1_env.envs.environment import env
from codea1_env.envs.single_seat import CoderEnv, TesterEnv
from codea1_env.envs.testing import Answers
from codea1_env.sandbox import LocalSandbox


def main() -> None:
    answers = Answers()
    with LocalSandbox() as sandbox:
        game = env(sandbox=sandbox, rounds=2)
        for episode in range(3):
            game.reset(seed=7 if episode == 0 else None)
            infos = dict(game.infos)
            while game.agents:
                shown = game.last()
                print(json.dumps(shown))
                seen = {agent: game.observe(agent) for agent in game.possible_agents}
                action = answers.to(seen, infos, episode)[game.agent_selection]
                game.step(None if shown[2] else action)
        for view, seat in ((CoderEnv(sandbox=sandbox), "coder_0"), (TesterEnv(sandbox=sandbox), "tester_0")):
            for episode in range(3):
                observation, info = view.reset(seed=7 if episode == 0 else None)
                action = answers.to({"tester_0": observation}, {"coder_0": info}, episode)[seat]
                print(json.dumps([observation, info, view.step(action)]))


if __name__ == "__main__":
    main()
