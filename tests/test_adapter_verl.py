"""verl's own reward worker, loaded from verl's own configuration: our reward functions, and our server in
SandboxFusion's place."""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import seat_contract as contract
import yaml
from double_question import on_fire
from fake_openai import Reply, completion, serving
from serve_process import serve

from codea1_env.errors import SandboxError
from codea1_env.sandbox import LocalSandbox

verl = pytest.importorskip("verl", reason="verl has an environment of its own: make test-adapters")
hydra = importlib.import_module("hydra")
torch = importlib.import_module("torch")
loop = importlib.import_module("verl.experimental.reward_loop.reward_loop")
pytestmark = pytest.mark.verl
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "your-framework.md").read_text()
EXAMPLE = ROOT / "examples" / "verl_rewards.yaml"
STDIO = {"inputs": ["1\n", "4\n", "7\n", "10\n"], "outputs": ["1\n", "2\n", "7\n", "5\n"]}
"""Halving, as a whole program."""


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One token for each byte, in a folder where verl finds it."""
    tokenizers = importlib.import_module("tokenizers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    model = tokenizers.models.BPE({letter: place for place, letter in enumerate(letters)}, [])
    bytes_ = tokenizers.Tokenizer(model)
    bytes_.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bytes_.decoder = tokenizers.decoders.ByteLevel()
    fast = importlib.import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_object=bytes_, eos_token="<|end|>", pad_token="<|pad|>"
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    fast.save_pretrained(folder)
    fast.folder = str(folder)
    return fast


def worker(tokenizer: Any, *overrides: str) -> Any:
    """verl's reward worker for its own configuration with these values."""
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    with hydra.initialize_config_dir(config_dir=folder, version_base=None):
        own = [f"actor_rollout_ref.model.path={tokenizer.folder}", *overrides]
        return loop.RewardLoopWorker(hydra.compose("ppo_trainer", overrides=own))


def of_page(after: str, **replaced: str) -> list[str]:
    """The configuration that stands on the page behind these words, as overrides."""
    block = re.search(r"```yaml\n(.*?)```", PAGE[PAGE.index(after) :], re.DOTALL)
    assert block is not None
    return overrides(block[1], **replaced)


def overrides(text: str, **replaced: str) -> list[str]:
    """One section of verl's `reward`, as overrides. What its function takes has no default, so it is added."""
    ((_, sections),) = yaml.safe_load(text).items()
    ((section, values),) = sections.items()
    assert replaced.keys() <= values.keys()
    texts = {name: str(value).replace("'", "") for name, value in (values | replaced).items()}
    return [f"{'+' * (name == 'reward_kwargs')}reward.{section}.{name}={text}" for name, text in texts.items()]


def paid(worker: Any, tokenizer: Any, rows: list[tuple[str, str, dict[str, Any]]], source: str = "codea1") -> list[Any]:
    """What verl pays for rows of (response, ground truth, extra_info)."""
    ids = [tokenizer(text)["input_ids"] for text, _, _ in rows]
    width = max(1, *map(len, ids))
    responses = torch.tensor([each + [0] * (width - len(each)) for each in ids])
    mask = torch.tensor([[1] * len(each) + [0] * (width - len(each)) for each in ids])
    batch = verl.DataProto.from_dict(
        tensors={"responses": responses, "attention_mask": mask},
        non_tensors={
            "data_source": np_objects([source] * len(rows)),
            "reward_model": np_objects([{"ground_truth": truth} for _, truth, _ in rows]),
            "extra_info": np_objects([dict(extra) for _, _, extra in rows]),
        },
    )
    return list(worker.loop.run_until_complete(worker.compute_score_batch(batch)))


def np_objects(values: list[Any]) -> Any:
    numpy = importlib.import_module("numpy")
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize("of_whom", ["page", "example"])
def test_a_coder_earns_what_the_arena_grades(of_whom: str, tokenizer: Any) -> None:
    rewards = worker(
        tokenizer, *(of_page("`custom_reward_function`") if of_whom == "page" else overrides(EXAMPLE.read_text()))
    )
    found = paid(rewards, tokenizer, [(text, contract.LINE, {}) for text in contract.PROGRAMS.values()])
    scores = dict(zip(contract.PROGRAMS, (each["reward_score"] for each in found), strict=True))
    assert scores == contract.golden_by_the_arena()
    assert found[0]["reward_extra_info"] == {"score": 1.0, "executes": 1.0}


def test_a_tester_earns_what_the_arena_pays(tokenizer: Any) -> None:
    rewards = worker(tokenizer, *of_page("`custom_reward_function`", name="tester_by_kills"))
    rows = [(text, contract.LINE, {"program": contract.WRONG}) for text in contract.SUITES.values()]
    scores = [each["reward_score"] for each in paid(rewards, tokenizer, rows)]
    assert dict(zip(contract.SUITES, scores, strict=True)) == contract.kills_by_the_arena()


def test_a_coder_is_attacked_by_a_tester_at_an_address(tokenizer: Any) -> None:
    with serving(lambda request, number: Reply(body=completion(contract.SUITES["right"]))) as tester:
        options = f"+reward.custom_reward_function.reward_kwargs={{tester_url: '{tester.url}', tester_model: m}}"
        rewards = worker(tokenizer, *of_page("`custom_reward_function`", name="coder_by_suites"), options)
        rows = [(contract.PROGRAMS[name], contract.LINE, {}) for name in ("right", "wrong", "late", "empty")]
        scores = [each["reward_score"] for each in paid(rewards, tokenizer, rows)]
        assert scores == [1.0, 1 / 3, 2 / 3, 0.0]
        assert len(tester.asked) == 4


def test_a_failure_of_ours_ends_the_batch_and_is_no_score(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rewards = worker(tokenizer, *of_page("`custom_reward_function`"))
    monkeypatch.setattr(LocalSandbox, "run", on_fire)
    with pytest.raises(SandboxError):
        paid(rewards, tokenizer, [(contract.fenced("def halve(x): return 5\n"), contract.LINE, {})])


WHOLE = {
    "right": ("x = int(input())\nprint(x if x % 2 else x // 2)\n", 1.0),
    "wrong": ("print(int(input()) // 2)\n", 0.5),
    "hostile": ("import os, sys\nprint(1)\nsys.stdout.flush()\nos._exit(0)\n", 0.25),
    "no program": ("x = (", 0.0),
}


def test_the_server_stands_in_sandbox_fusions_place(tokenizer: Any) -> None:
    with serve("--workers", "2") as (url, _):
        rewards = worker(tokenizer, *of_page("SandboxFusion", url=f"{url}/run_code"))
        rows = [(contract.fenced(source), json.dumps(STDIO), {}) for source, _ in WHOLE.values()]
        rows += [(contract.fenced("while True: pass\n"), json.dumps({"inputs": [""], "outputs": [""]}), {})]
        found = paid(rewards, tokenizer, [*rows, ("", json.dumps(STDIO), {})], source="codecontests")
    assert [each["reward_score"] for each in found] == [share for _, share in WHOLE.values()] + [0.0, 0.0]
