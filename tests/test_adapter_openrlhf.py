"""OpenRLHF's own executor: it samples from an engine, and asks a file or a server of ours for the reward."""

import asyncio
import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import seat_contract as contract
from double_question import on_fire
from serve_process import serve

from codea1_env.sandbox import LocalSandbox

pytest.importorskip("openrlhf", reason="OpenRLHF has an environment of its own: make test-adapters")
agent = importlib.import_module("openrlhf.utils.agent")
torch = importlib.import_module("torch")
pytestmark = pytest.mark.openrlhf
EXAMPLE = str(Path(__file__).parents[1] / "examples" / "openrlhf_reward.py")
PROMPT = f"<|im_start|>user\n{contract.PROBLEM.question}<|im_end|>\n<|im_start|>assistant\n"
END = "<|im_end|>"


class Letters:
    """A tokenizer whose tokens are letters."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        assert not skip_special_tokens
        return "".join(map(chr, ids))


class Saying:
    """An engine that says one thing."""

    def __init__(self, text: str) -> None:
        self._text = text

    async def generate(self, tokens: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        ids = [ord(letter) for letter in self._text]
        said = SimpleNamespace(token_ids=ids, text=self._text, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[said])


def executed(where: str | list[str], label: str, texts: list[str], max_length: int = 100_000) -> list[dict[str, Any]]:
    """What the executor makes of these answers."""
    executor = agent.SingleTurnAgentExecutor(where)

    async def all_of_them() -> list[dict[str, Any]]:
        params = SimpleNamespace(max_tokens=1_000, logprobs=None)
        runs = (executor.execute(PROMPT, label, params, max_length, Letters(), Saying(text + END)) for text in texts)
        return list(await asyncio.gather(*runs))

    return asyncio.run(all_of_them())


def rewards(found: list[dict[str, Any]]) -> list[float]:
    """As OpenRLHF turns them into tensors."""
    return [torch.tensor([each["reward"]]).flatten().item() for each in found]


def approximately(paid: dict[str, float]) -> Any:
    return pytest.approx(list(paid.values()))  # OpenRLHF's tensors are of single precision


def test_a_coder_earns_what_the_arena_grades_by_the_examples_file() -> None:
    found = executed(EXAMPLE, contract.LINE, list(contract.PROGRAMS.values()))
    assert rewards(found) == approximately(contract.golden_by_the_arena())
    assert found[0]["extra_logs"]["executes"].tolist() == [1.0]
    assert found[0]["scores"].shape == (1,)


def test_a_tester_earns_what_the_arena_pays(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text("from codea1_env.adapters.openrlhf import tester_by_kills as reward_func\n")
    found = executed(str(file), contract.TESTER_LABEL, list(contract.SUITES.values()))
    assert rewards(found) == approximately(contract.kills_by_the_arena())


def test_the_server_pays_both_seats_the_same() -> None:
    with serve("--workers", "2") as (url, _):
        coder = executed([f"{url}/v1/openrlhf/coder"], contract.LINE, list(contract.PROGRAMS.values()))
        tester = executed([f"{url}/v1/openrlhf/tester"], contract.TESTER_LABEL, list(contract.SUITES.values()))
    assert rewards(coder) == approximately(contract.golden_by_the_arena())
    assert rewards(tester) == approximately(contract.kills_by_the_arena())


def test_a_prompt_that_was_cut_is_still_found() -> None:
    (found,) = executed(EXAMPLE, contract.LINE, [contract.PROGRAMS["right"]], max_length=1_000 + len(PROMPT) - 20)
    assert rewards([found]) == [1.0]


def test_a_failure_of_ours_and_a_wrong_label_leave_no_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    (wrong,) = executed(EXAMPLE, json.dumps({"problem_id": "x"}), [contract.PROGRAMS["right"]])
    assert wrong["reward"] is None

    monkeypatch.setattr(LocalSandbox, "run", on_fire)
    (failed,) = executed(EXAMPLE, contract.LINE, [contract.fenced("def halve(x): return 5\n")])
    assert failed["reward"] is None
