"""A model that vLLM runs as a player. Optional: `make test-vllm` makes an environment that has vLLM."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import tiny_chat_model

from codea1_env.errors import ConfigurationError
from codea1_env.players import CoderRequest, Player, Request, Sampling, TesterRequest
from codea1_env.problems import bundled_problems

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm"),
]


def test_vllm_plays_both_seats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from codea1_env.training.policies.vllm_colocated import ENVIRONMENT

    for name, value in {**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}.items():
        monkeypatch.setenv(name, value)
    from codea1_env.players.vllm_offline import VLLMPlayer

    problem = bundled_problems()[0]
    requests: list[Request] = [CoderRequest(problem), TesterRequest(problem, "def f(): ...")]
    player: Player = VLLMPlayer.load(
        tiny_chat_model.save(tmp_path, hidden_size=64), dtype="float32", enforce_eager=True, max_model_len=4096
    )
    sampled = player.respond(requests, 3, Sampling(max_tokens=8), seed=1)
    assert [len(group) for group in sampled] == [3, 3]
    texts = [[response.text for response in group] for group in sampled]
    assert len({text for group in texts for text in group}) > 1
    again = player.respond(requests, 3, Sampling(max_tokens=8), seed=1)
    assert [[response.text for response in group] for group in again] == texts
    (greedy,) = player.respond(requests[:1], 2, Sampling(temperature=0, max_tokens=4))
    assert greedy[0] == greedy[1]
    assert greedy[0].truncated
    assert player.respond([], 1) == []
    many = [CoderRequest(each) for each in bundled_problems()]  # more tokens than vLLM reads at once
    assert [len(group) for group in player.respond(many, 4, Sampling(max_tokens=2), seed=1)] == [4] * len(many)
    with pytest.raises(ConfigurationError, match="room for prompt and answer"):
        player.respond([TesterRequest(problem, "x = 1\n" * 4000)], 1, Sampling(max_tokens=8))
