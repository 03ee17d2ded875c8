"""A transformers model as a player: what an answer depends on, and what comes with it."""

import concurrent.futures
import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_chat_model
import tokenizers
import torch
import transformers
from tiny_language_models import random_model
from transformers.modeling_outputs import CausalLMOutputWithPast

from codea1_env.errors import ConfigurationError
from codea1_env.language_models.loading import ready
from codea1_env.language_models.lora import Adapter
from codea1_env.language_models.rollouts import Completion
from codea1_env.players import CoderRequest, Player, Request, Sampling, TesterRequest
from codea1_env.players.chat import chat_messages, said_text
from codea1_env.players.hugging_face import HuggingFacePlayer
from codea1_env.players.player import Response
from codea1_env.players.templates import Begun
from codea1_env.problems import bundled_problems
from codea1_env.problems.sources.hub import hub_or_cache

PROBLEMS = bundled_problems()[:3]
REQUESTS: list[Request] = [
    *(CoderRequest(problem) for problem in PROBLEMS),
    TesterRequest(PROBLEMS[0], "def f(): ..."),
    CoderRequest(PROBLEMS[1], "def f(): ...", "assert f() == 1"),
]
SHORT = Sampling(max_tokens=12)
TOKENIZER = tiny_chat_model.tiny_tokenizer()
MODEL = tiny_chat_model.tiny_model()


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    with tiny_chat_model.one_thread():
        yield


def brief(request: Request) -> list[dict[str, str]]:
    """A few tokens for each request, of another number for each."""
    return [
        {"role": "user", "content": f"{request.problem.question[:5]}{request.program}{request.problem.entry_point}"}
    ]


def player(model: Any = MODEL, tokenizer: Any = TOKENIZER, **arguments: Any) -> HuggingFacePlayer:
    return HuggingFacePlayer(model, tokenizer, **{"name": "tiny", "prompt": brief, "keeps_tokens": True, **arguments})


def scored(model: Any, seat: HuggingFacePlayer, request: Request, answer: Response, sampling: Sampling) -> torch.Tensor:
    """The model's logits over each token's place, read in one go, without cache or padding."""
    prompt = seat._prompt_ids(request, sampling)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *(answer.token_ids or ())]])).logits[0]
    return logits[len(prompt) - 1 : -1]  # (tokens, vocabulary)


def told_by(model: Any, seat: HuggingFacePlayer, request: Request, answer: Response, sampling: Sampling) -> list[float]:
    """The log-probabilities of the answer's tokens."""
    told = (scored(model, seat, request, answer, sampling) / (sampling.temperature or 1)).log_softmax(dim=1)
    found: list[float] = told.gather(1, torch.tensor(answer.token_ids)[:, None])[:, 0].tolist()
    return found


def test_it_gives_n_responses_to_each_request_under_its_own_name() -> None:
    seat: Player = player()
    answers = seat.respond(REQUESTS, n=2, sampling=SHORT)
    assert [len(group) for group in answers] == [2] * len(REQUESTS)
    assert {(each.player, each.version) for group in answers for each in group} == {("tiny", seat.version)}
    assert seat.respond([]) == []


def test_an_answer_does_not_depend_on_what_else_is_asked_nor_on_the_size_of_the_batch() -> None:
    def said(answers: list[list[Any]]) -> list[list[tuple[int, ...]]]:
        return [[each.token_ids for each in group] for group in answers]

    together = said(player(rows_at_once=100).respond(REQUESTS, n=2, sampling=SHORT, seed=5))
    assert together == said(player(rows_at_once=3).respond(REQUESTS, n=2, sampling=SHORT, seed=5))
    assert together[::-1] == said(player(rows_at_once=1).respond(REQUESTS[::-1], n=2, sampling=SHORT, seed=5))
    assert together[2] == said(player().respond(REQUESTS[2:3], n=2, sampling=SHORT, seed=5))[0]


def test_answers_differ_between_seeds_samples_and_requests() -> None:
    texts = [each.text for seed in (1, 2) for group in player().respond(REQUESTS, 2, SHORT, seed) for each in group]
    assert len(set(texts)) == len(texts)


def test_the_global_source_of_randomness_and_the_mode_of_the_model_are_left_alone() -> None:
    MODEL.train()
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one = player().respond(REQUESTS[:1], sampling=SHORT)
    assert torch.equal(before, torch.random.get_rng_state())
    assert MODEL.training
    MODEL.eval()
    torch.manual_seed(4)
    assert one == player().respond(REQUESTS[:1], sampling=SHORT)


def test_temperature_0_takes_the_likeliest_token_every_time() -> None:
    greedy = dataclasses.replace(SHORT, temperature=0.0)
    for request, group in zip(REQUESTS, player().respond(REQUESTS, n=2, sampling=greedy), strict=True):
        tokens = group[0].token_ids or ()
        assert group[1].token_ids == tokens
        assert scored(MODEL, player(), request, group[0], greedy).argmax(dim=1).tolist() == list(tokens)
    nearly = [dataclasses.replace(SHORT, temperature=1e-30), dataclasses.replace(SHORT, top_p=1e-9)]
    expected = [[each.token_ids for each in group] for group in player().respond(REQUESTS, sampling=greedy)]
    for sampling in nearly:
        assert [[each.token_ids for each in g] for g in player().respond(REQUESTS, sampling=sampling)] == expected


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_log_probs_are_those_of_the_distribution_that_was_drawn_from(temperature: float) -> None:
    sampling = dataclasses.replace(SHORT, temperature=temperature)
    for request, (answer,) in zip(REQUESTS, player().respond(REQUESTS, sampling=sampling), strict=True):
        assert answer.log_probs == pytest.approx(told_by(MODEL, player(), request, answer, sampling), abs=1e-4)


def test_an_answer_is_truncated_unless_it_ends_with_the_end_token() -> None:
    groups = player(rows_at_once=200).respond(REQUESTS, 20, Sampling(max_tokens=25), seed=2)
    answers = [each for group in groups for each in group]
    ended = [each for each in answers if not each.truncated]
    assert ended
    assert len(ended) < len(answers)
    for each in answers:
        tokens = each.token_ids or ()
        assert (tokens[-1] == TOKENIZER.eos_token_id) != each.truncated
        assert len(tokens) == 25 or not each.truncated
        assert each.text == TOKENIZER.decode(tokens, skip_special_tokens=True)
        assert len(each.log_probs or ()) == len(tokens)
        assert "<end>" not in each.text


def test_tokens_are_kept_only_where_asked_for() -> None:
    (answer,) = player(keeps_tokens=False).respond(REQUESTS[:1], sampling=SHORT)[0]
    assert answer.token_ids is None
    assert answer.log_probs is None


def test_a_saved_model_answers_as_it_did_and_another_has_another_version(tmp_path: Path) -> None:
    loaded = HuggingFacePlayer.load(
        tiny_chat_model.save(tmp_path), device="cpu", name="tiny", prompt=brief, keeps_tokens=True
    )
    greedy = Sampling(temperature=0, max_tokens=12)
    for one, other in zip(loaded.respond(REQUESTS, 2, greedy), player().respond(REQUESTS, 2, greedy), strict=True):
        assert [answer.token_ids for answer in one] == [answer.token_ids for answer in other]
        assert one[0].log_probs == pytest.approx(other[0].log_probs, abs=1e-4)
    assert loaded.version == player().version
    other = player(tiny_chat_model.tiny_model(seed=1))
    assert other.version != player().version
    sampling = Sampling(temperature=0.8, max_tokens=12)
    found = loaded.respond(REQUESTS, 3, sampling, seed=4)
    assert found == loaded.respond(REQUESTS, 3, sampling, seed=4)
    alone = loaded.respond(REQUESTS[1:2], 3, sampling, seed=4)
    assert [answer.token_ids for answer in found[1]] == [answer.token_ids for answer in alone[0]]
    assert found != loaded.respond(REQUESTS, 3, sampling, seed=5)
    for request, responses in zip(REQUESTS, found, strict=True):
        for response in responses:
            told = told_by(MODEL, loaded, request, response, sampling)
            assert response.log_probs == pytest.approx(told, abs=1e-4)


def test_callers_in_several_threads_get_the_answers_that_each_would_get_alone(tmp_path: Path) -> None:
    seat = HuggingFacePlayer.load(tiny_chat_model.save(tmp_path), device="cpu", prompt=brief)
    alone = [seat.respond([request], 4, SHORT) for request in REQUESTS]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda request: seat.respond([request], 4, SHORT), REQUESTS * 4)) == alone * 4


def test_what_cannot_work_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="n must be at least 1, got 0"):
        player().respond(REQUESTS, n=0)
    with pytest.raises(ConfigurationError, match="rows_at_once must be at least 1, got 0"):
        player(rows_at_once=0)
    with pytest.raises(ConfigurationError, match="rows_at_once must be at least 1, got 0"):
        HuggingFacePlayer.load(tiny_chat_model.save(tmp_path), rows_at_once=0)
    with pytest.raises(ConfigurationError, match=r"must fit into the 4096 positions of tiny, got \d+ \+ 4090"):
        player().respond(REQUESTS, sampling=Sampling(max_tokens=4090))
    bare = tiny_chat_model.tiny_tokenizer()
    bare.chat_template = None
    with pytest.raises(ConfigurationError, match="must have a chat template, got none"):
        player(tokenizer=bare)
    strict = tiny_chat_model.tiny_tokenizer()
    strict.chat_template = "{{ raise_exception('no system role') }}"
    with pytest.raises(ConfigurationError, match="must take the prompt's messages, got: no system role"):
        player(tokenizer=strict).respond(REQUESTS)


def test_a_hub_out_of_reach_is_asked_once_and_then_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's client would ask again for half a minute, for each file."""
    asked = []
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", asked.append)
    with pytest.raises(ConfigurationError, match=r"the model of nope must have .* that can be read, got nope: "):
        HuggingFacePlayer.load("nope")
    assert asked == []
    assert not huggingface_hub.constants.HF_HUB_OFFLINE, "the next one may be within reach"


def test_two_who_ask_the_hub_at_once_leave_it_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    is_in, may_leave = threading.Event(), threading.Event()

    def ask() -> None:
        with hub_or_cache():
            is_in.set()
            may_leave.wait(60)

    other = threading.Thread(target=ask)
    with hub_or_cache():
        other.start()
        is_in.wait(1)  # it may not come in meanwhile
    may_leave.set()
    other.join()
    assert is_in.is_set()
    assert not huggingface_hub.constants.HF_HUB_OFFLINE


def test_it_reads_the_prompts_of_both_seats_unless_told_otherwise() -> None:
    seat = player(prompt=chat_messages)
    for request in REQUESTS:
        shown = TOKENIZER.decode(seat._prompt_ids(request, SHORT))
        assert shown.endswith("<assistant>")
        assert request.problem.question.strip() in shown
        assert request.program in shown
    ((answer,),) = seat.respond(REQUESTS[:1], sampling=Sampling(max_tokens=2))
    assert len(answer.token_ids or ()) <= 2
    no_utf_8 = TesterRequest(PROBLEMS[0], "# \ud800")
    assert "# ?" in TOKENIZER.decode(seat._prompt_ids(no_utf_8, SHORT))


class Says(type(MODEL)):  # type: ignore[misc]  # the base class has no types
    """A model that says a text, whatever it is asked, and then the same again."""

    def __init__(self, text: str) -> None:
        super().__init__(MODEL.config)
        self.tokens = TOKENIZER(text)["input_ids"]
        self.generation_config = MODEL.generation_config
        self.steps = 0

    def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
        logits = torch.full((len(input_ids), 1, MODEL.config.vocab_size), -30.0)
        logits[:, :, self.tokens[self.steps % len(self.tokens)]] = 30.0
        self.steps += 1
        return CausalLMOutputWithPast(logits=logits)


def begun_with(text: str) -> Any:
    return lambda request: [*brief(request), {"role": "assistant", "content": text}]


BLOCK = "3) == 9\nassert f(4) == 16\n```\nThese tests show it.\n"


def test_an_answer_that_the_prompt_begins_has_that_beginning_and_ends_with_its_block() -> None:
    model = Says(BLOCK)
    seat = player(model, prompt=begun_with("```python\nassert f("))
    shown = TOKENIZER.decode(seat._prompt_ids(REQUESTS[0], SHORT))
    assert shown.endswith("<assistant>```python\nassert f(")
    ((answer,),) = seat.respond(REQUESTS[:1], sampling=Sampling(temperature=0, max_tokens=200))
    assert answer.text == "```python\nassert f(3) == 9\nassert f(4) == 16\n```"
    assert not answer.truncated
    assert TOKENIZER.decode(list(answer.token_ids or ())) == "3) == 9\nassert f(4) == 16\n```", "only what it said"
    assert model.steps == len(answer.token_ids or ()), "nothing was asked for behind the block"


def test_without_a_beginning_an_answer_ends_at_its_fence_where_that_is_asked_for() -> None:
    said = f"Here:\n```python\nassert f({BLOCK}"
    long = Sampling(temperature=0, max_tokens=len(said))
    ((whole,),) = player(Says(said)).respond(REQUESTS[:1], sampling=long)
    assert whole.text == said
    assert whole.truncated
    stopped = dataclasses.replace(long, stop_at_fence=True)
    ((answer,),) = player(Says(said)).respond(REQUESTS[:1], sampling=stopped)
    assert answer.text == "Here:\n```python\nassert f(3) == 9\nassert f(4) == 16\n```"
    assert not answer.truncated


def test_a_tester_ends_with_its_last_test_where_that_is_asked_for_and_a_coder_does_not() -> None:
    said = f"```python\nassert f({BLOCK}"
    sampling = Sampling(temperature=0, max_tokens=len(said), stop_at_fence=True, stop_at_tests=1)
    coder = next(request for request in REQUESTS if not isinstance(request, TesterRequest))
    tester = next(request for request in REQUESTS if isinstance(request, TesterRequest))
    ((program,), (suite,)) = (player(Says(said)).respond([asked], sampling=sampling)[0] for asked in (coder, tester))
    assert program.text == "```python\nassert f(3) == 9\nassert f(4) == 16\n```"
    assert (suite.text, suite.truncated) == ("```python\nassert f(3) == 9\n", False)


def test_a_beginning_without_a_fence_is_given_back_and_stops_nothing() -> None:
    ((answer,),) = player(Says(BLOCK), prompt=begun_with("f(")).respond(
        REQUESTS[:1], sampling=Sampling(temperature=0, max_tokens=len(BLOCK))
    )
    assert answer.text == "f(" + BLOCK


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("qwen2", {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 0}),
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"mlp_bias": True}),
    ],
)
def test_a_model_that_the_engine_does_not_compute_answers_through_transformers(
    family: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    model = random_model(family, **changes)
    model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = HuggingFacePlayer.load(tmp_path, device="cpu", prompt=brief, keeps_tokens=True)
    sampling = Sampling(temperature=1.0, max_tokens=12)
    for request, (answer,) in zip(REQUESTS, loaded.respond(REQUESTS, 1, sampling, seed=4), strict=True):
        assert answer.log_probs == pytest.approx(told_by(model, loaded, request, answer, sampling), abs=1e-4)


def test_an_adapter_of_another_scale_has_another_version_and_one_beside_an_odd_base_is_refused(tmp_path: Path) -> None:
    def loaded(model: Any, alpha: float) -> HuggingFacePlayer:
        base, adapter = tmp_path / "base", tmp_path / "adapter"
        model.save_pretrained(base)
        TOKENIZER.save_pretrained(base)
        Adapter(ready(model, TOKENIZER, source="tiny").base.shape, rank=2, alpha=alpha).save(adapter, str(base))
        return HuggingFacePlayer.load(adapter, device="cpu")

    model = random_model("qwen2")
    assert loaded(model, 4.0).version != loaded(model, 400.0).version
    with pytest.raises(ConfigurationError, match=r"the base of the adapter .* must have hidden_act silu, got 'gelu'"):
        loaded(random_model("llama", hidden_act="gelu"), 4.0)


def test_an_answer_that_was_begun_keeps_the_space_that_its_tokens_begin_with() -> None:
    """Decoders of SentencePiece strip one from what begins a text."""
    pieces = {"<unk>": 0, "▁a": 1, "▁▁▁▁": 2, "x": 3, "▁": 4, "a": 5}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(pieces, [("▁", "a")], unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    decoders = tokenizers.decoders
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")
    assert tokenizer.decode([2, 3]) == "   x"
    assert said_text(tokenizer, [2, 3], Begun([], "def f():\n")) == "    x"
    assert said_text(tokenizer, [2, 3], Begun([], "")) == "   x"


class SaysBlocks:
    """An engine for CPUs that says one text, and remembers how it was asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[bool], bool]] = []

    def sample(self, requests: Any, sampling: Any) -> list[list[Completion]]:
        self.seen.append(([bool(request.begun) for request in requests], sampling.stop_at_fence))
        tokens = tuple(TOKENIZER(BLOCK)["input_ids"])
        return [[Completion(tokens, (0.0,) * len(tokens), "stop")] * request.samples for request in requests]


def test_the_engine_for_cpus_is_told_where_an_answer_was_begun_inside_a_block() -> None:
    def mixed(request: Request) -> list[dict[str, str]]:
        return begun_with("```python\nassert f(")(request) if isinstance(request, TesterRequest) else brief(request)

    seat, engine = player(prompt=mixed), SaysBlocks()
    seat._engine = engine  # type: ignore[assignment]
    answers = seat.respond(REQUESTS, n=2, sampling=SHORT)
    assert engine.seen == [([False, False, False, True, False], False)]
    assert [len(group) for group in answers] == [2] * 5
    assert answers[3][0].text == "```python\nassert f(3) == 9\nassert f(4) == 16\n```"
    assert not answers[3][0].truncated
    assert answers[0][0].text == BLOCK, "nothing was begun, and nothing is cut"
    seat.respond(REQUESTS, sampling=dataclasses.replace(SHORT, stop_at_fence=True))
    assert engine.seen[1:] == [([False, False, False, True, False], True)]
