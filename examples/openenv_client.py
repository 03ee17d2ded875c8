"""A client of an OpenEnv server of the game: writes a program, then the tests against it, and is paid for both seats.

python -m codea1_env.adapters.openenv_server       # the server (extra `openenv`)
python examples/openenv_client.py http://127.0.0.1:8000

The client needs nothing but `pip install openenv`; a model of yours answers in place of the two texts.
"""

import sys

try:
    from openenv import GenericEnvClient
except ImportError as error:
    raise SystemExit(f"openenv_client.py needs openenv: pip install openenv (got: {error})") from None

PROGRAM = "def squeeze_spaces(text):\n    return ' '.join(part for part in text.split(' ') if part)"
SUITE = "assert squeeze_spaces('a  b') == 'a b'\nassert squeeze_spaces(' a') == 'a'"


def main(url: str) -> None:
    with GenericEnvClient(base_url=url).sync() as game:
        seen = game.reset(seat="both", problem_id="bundled/squeeze-spaces")
        print(seen.observation["question"])
        game.step({"response": PROGRAM})
        rewards = game.step({"response": SUITE}).observation["rewards"]
    print(f"coder's reward {rewards['coder']:.3f}, tester's reward {rewards['tester']:.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python examples/openenv_client.py URL")
    main(sys.argv[1])
