"""Players answer for a seat. Scripted and recorded players are exported here; models have modules of their own.

Does not train anything.
"""

from codea1_env.errors import PlayerError
from codea1_env.players.human import HumanPlayer
from codea1_env.players.openai_compatible import OpenAIPlayer, Traffic
from codea1_env.players.player import CoderRequest, Player, Request, Response, Sampling, TesterRequest
from codea1_env.players.recorded import RecordedPlayer
from codea1_env.players.scripted import FuzzTester, GoldenTester, MutantCoder, OracleCoder, RandomTester

__all__ = [
    "CoderRequest",
    "FuzzTester",
    "GoldenTester",
    "HumanPlayer",
    "MutantCoder",
    "OpenAIPlayer",
    "OracleCoder",
    "Player",
    "PlayerError",
    "RandomTester",
    "RecordedPlayer",
    "Request",
    "Response",
    "Sampling",
    "TesterRequest",
    "Traffic",
]
