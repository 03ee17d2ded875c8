"""The resource server as NeMo Gym starts it: its own configuration classes, its own web server, its own requests."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import seat_contract as contract
from double_question import on_fire

from codea1_env.sandbox import LocalSandbox

pytest.importorskip("nemo_gym", reason="NeMo Gym has an environment of its own: make test-adapters")
omegaconf = importlib.import_module("omegaconf")
config_types = importlib.import_module("nemo_gym.config_types")
openai_utils = importlib.import_module("nemo_gym.openai_utils")
server_utils = importlib.import_module("nemo_gym.server_utils")
adapter = importlib.import_module("codea1_env.adapters.nemo_gym")
test_client = importlib.import_module("fastapi.testclient")
pytestmark = pytest.mark.nemo_gym
FOLDER = Path(__file__).parents[1] / "examples" / "nemo_gym" / "resources_servers" / "codea1"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of the server that the example's configuration describes."""
    asked = omegaconf.OmegaConf.to_container(omegaconf.OmegaConf.load(FOLDER / "configs" / "codea1.yaml"))
    options = asked["codea1"]["resources_servers"]["codea1"]
    config = adapter.SeatConfig(host="127.0.0.1", port=1, name="codea1", **options)
    assert (FOLDER / config.entrypoint).exists()
    assert config.workers == 2
    server = adapter.SeatServer(config=config, server_client=MagicMock(spec=server_utils.ServerClient))
    app = server.setup_webserver()
    server.setup_exception_middleware(app)
    with test_client.TestClient(app) as client:
        yield client


def request(text: str, **metadata: Any) -> Any:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": content}
    response = openai_utils.NeMoGymResponse(
        id="r", created_at=0.0, model="m", object="response", output=[message] if text else [],
        parallel_tool_calls=False, tool_choice="auto", tools=[],
    )  # fmt: skip
    asked = {"input": [{"role": "user", "content": contract.PROBLEM.question}]}
    return {
        "responses_create_params": asked,
        "response": response.model_dump(mode="json"),
        "verifier_metadata": metadata,
    }


def test_a_coder_earns_what_the_arena_grades(client: Any) -> None:
    assert client.post("/seed_session", json={}).status_code == 200
    found = {}
    for name, text in contract.PROGRAMS.items():
        answer = client.post("/verify", json=request(text, problem=json.loads(contract.LINE)))
        assert answer.status_code == 200, answer.text
        found[name] = answer.json()["reward"]
    assert found == contract.golden_by_the_arena()


def test_the_servers_environment_gets_nemo_gym_as_its_own_servers_do_and_the_clone() -> None:
    """NeMo Gym leaves out lines with `../..` unless it is a clone itself, and then installs nothing beside the file."""
    theirs = Path(server_utils.__file__).parents[1] / "responses_api_models" / "openai_model" / "requirements.txt"
    lines = [line for line in (FOLDER / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == [*theirs.read_text().splitlines(), "-e ${CODEA1}"]


def test_a_tester_earns_what_the_arena_pays(client: Any) -> None:
    answers = {
        name: client.post("/verify", json=request(text, problem=contract.LINE, program=contract.WRONG)).json()
        for name, text in contract.SUITES.items()
    }
    assert {name: answer["reward"] for name, answer in answers.items()} == contract.kills_by_the_arena()
    assert answers["right"]["measures"] == {"validity": 3 / 8, "kills": 2 / 8}


def test_a_wrong_row_is_told_and_a_failure_of_ours_is_no_reward(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = client.post("/verify", json=request("x", problem={"problem_id": "x"}))
    assert wrong.status_code == 422
    assert "the fields must include" in wrong.json()["detail"]

    monkeypatch.setattr(LocalSandbox, "run", on_fire)
    failed = client.post("/verify", json=request(contract.fenced("def halve(x): return 5\n"), problem=contract.LINE))
    assert failed.status_code == 500
    assert "reward" not in failed.text
