"""Both seats as a resource server of NeMo Gym, in the folder `examples/nemo_gym`. A row's `verifier_metadata` has
`problem`, a line of a file of problems as text or object, and for a tester `program`, which it attacks. What cannot be
judged is a status of 4xx or 5xx, and never a reward.
"""

from typing import Any

from codea1_env.adapters.seat_rewards import shared
from codea1_env.errors import FormatError
from codea1_env.extras import extra

with extra("nemo-gym", "the resource server of NeMo Gym needs"):
    from nemo_gym import base_resources_server as gym
    from fastapi import HTTPException  # isort: skip  # NeMo Gym brings it


class SeatConfig(gym.BaseResourcesServerConfig):  # type: ignore[misc]  # the types of NeMo Gym are not followed here
    workers: int = 1  # programs at a time
    sandbox: str = "local"


class SeatRequest(gym.BaseVerifyRequest):  # type: ignore[misc]
    verifier_metadata: dict[str, Any]


class SeatResponse(SeatRequest, gym.BaseVerifyResponse):  # type: ignore[misc]
    measures: dict[str, float]  # `executes` of a coder, `validity` and `kills` of a tester


class SeatServer(gym.SimpleResourcesServer):  # type: ignore[misc]
    config: SeatConfig

    async def verify(self, body: SeatRequest) -> SeatResponse:
        """The share of golden tests that a program passes, or R_T of a suite."""
        rewards, row = shared(self.config.workers, self.config.sandbox), body.verifier_metadata
        try:
            earned = await rewards.of_row(row.get("problem"), body.response.output_text, row.get("program"))
        except FormatError as error:
            raise HTTPException(422, str(error)) from None
        return SeatResponse(**body.model_dump(), reward=earned.reward, measures=dict(earned.measures))
