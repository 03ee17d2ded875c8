"""The engine for small language models: its numbers are transformers' and PEFT's, and samples do not feel the batch."""

import gc
import json
import shutil
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import peft
import tiny_chat_model
import torch
import transformers
from gguf_files import write_header
from tiny_language_models import SHAPES, random_model

import codea1_env
from codea1_env.configuration.arguments import parse_arguments
from codea1_env.configuration.model_sections import LoraPreset, PretrainedModel, shape_of
from codea1_env.configuration.presets import load_preset
from codea1_env.errors import ConfigurationError, PlayerError
from codea1_env.language_models.base import Sizes
from codea1_env.language_models.continuous import ContinuousEngine
from codea1_env.language_models.directories import base_of, read_gguf_header
from codea1_env.language_models.drawing import draw
from codea1_env.language_models.learner import Learner
from codea1_env.language_models.loading import LanguageModel, base_and_digest, load, ready
from codea1_env.language_models.lora import WEIGHTS, Adapter
from codea1_env.language_models.over_generate import GenerateEngine
from codea1_env.language_models.rollouts import AnswerEnd, Completion, RolloutRequest, RolloutSampling
from codea1_env.players import CoderRequest, Sampling
from codea1_env.players.hugging_face import HuggingFacePlayer
from codea1_env.problems import bundled_problems
from codea1_env.reading.responses import read_suite
from codea1_env.training.models.shared_base import SeatModel, seat_model, shared_base
from codea1_env.training.run.provenance import weights_hash

TOKENIZER = tiny_chat_model.tiny_tokenizer()
SHORT = RolloutSampling(max_tokens=20)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    with tiny_chat_model.one_thread():
        yield


def tiny(shape: str = "qwen2") -> tuple[Any, LanguageModel]:
    model = random_model(shape)
    return model, ready(model, TOKENIZER, source=shape, dtype="float32")


def random_adapter(model: LanguageModel, seed: int = 1) -> Adapter:
    """One that changes something."""
    adapter = Adapter(model.base.shape, rank=4, alpha=8.0, seed=seed, device=model.base.device)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in adapter.named():
            if "lora_B" in name:
                tensor.copy_(0.3 * torch.randn(tensor.shape, generator=generator))
    return adapter


def with_peft(model: Any, adapter: Adapter, directory: Path) -> Any:
    """PEFT's model with the adapter as it was saved."""
    adapter.save(directory, "tiny")
    return peft.PeftModel.from_pretrained(model, directory).eval()


def text(words: str) -> tuple[int, ...]:
    return tuple(TOKENIZER(words, add_special_tokens=False)["input_ids"])


REQUESTS = [
    RolloutRequest(text("a prompt that many begin with, and goes on"), 3, (0, 0)),
    RolloutRequest(text("short"), 5, (0, 1)),
    RolloutRequest(text("a prompt that many begin with, or so"), 2, (0, "two")),
    RolloutRequest(text("short"), 1, (0, 3)),
]


def flat(found: list[list[Completion]]) -> list[Completion]:
    return [completion for group in found for completion in group]


def read_again(model: Any, prompt: tuple[int, ...], completion: Completion) -> torch.Tensor:
    """What transformers' forward pass says of the tokens: their log-probabilities."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *completion.tokens]])).logits[0]
    scores = logits[len(prompt) - 1 : -1].log_softmax(dim=1)
    return scores.gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_both_engines_sample_the_same_and_tell_the_models_log_probabilities(shape: str, tmp_path: Path) -> None:
    model, packed = tiny(shape)
    fast = ContinuousEngine(packed, slots=4).sample(REQUESTS, SHORT)
    engine = over_generate(model, packed, {}, tmp_path)
    engine._rows_at_once = 3
    slow = engine.sample(REQUESTS, SHORT)
    assert [[one.tokens for one in group] for group in fast] == [[one.tokens for one in group] for group in slow]
    assert [one.finish for one in flat(fast)] == [one.finish for one in flat(slow)]
    for request, group, other in zip(REQUESTS, fast, slow, strict=True):
        for one, same in zip(group, other, strict=True):
            assert one.log_probs == pytest.approx(same.log_probs, abs=1e-4)
            assert one.log_probs == pytest.approx(read_again(model, request.prompt, one).tolist(), abs=1e-4)
    assert len({one.tokens for one in flat(fast)}) > 5


def test_loading_draws_no_bar_into_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tiny_chat_model.save(tmp_path)
    transformers.utils.logging.enable_progress_bar()
    capfd.readouterr()
    load(tmp_path)
    assert capfd.readouterr().err == ""


def test_what_a_models_authors_recommend_does_not_count_in_either_engine(tmp_path: Path) -> None:
    model, packed = tiny()
    fast = ContinuousEngine(packed, slots=4).sample(REQUESTS, SHORT)
    model.generation_config.update(min_new_tokens=12, no_repeat_ngram_size=1, repetition_penalty=3.0)
    slow = over_generate(model, packed, {}, tmp_path).sample(REQUESTS, SHORT)
    assert [one.tokens for one in flat(slow)] == [one.tokens for one in flat(fast)]
    for one, same in zip(flat(slow), flat(fast), strict=True):
        assert one.log_probs == pytest.approx(same.log_probs, abs=1e-4)


def over_generate(model: Any, packed: LanguageModel, adapters: dict[str, Adapter], directory: Path) -> Any:
    """The engine over `generate`, which reads the model from a directory."""
    model.save_pretrained(directory / "base")
    return GenerateEngine(replace(packed, source=str(directory / "base")), adapters)


def test_both_engines_sample_with_the_adapters_as_they_are_when_they_are_asked(tmp_path: Path) -> None:
    """One of them by PEFT. Rows with different adapters share a batch of the other."""
    model, packed = tiny()
    adapters = {"one": random_adapter(packed, 1), "two": random_adapter(packed, 2)}
    engines = ContinuousEngine(packed, adapters), over_generate(model, packed, adapters, tmp_path)
    asked = [replace(request, adapter=name) for request, name in zip(REQUESTS, ("one", "two", "", "one"), strict=True)]
    told = []
    for _ in range(2):
        fast, slow = (flat(engine.sample(asked, SHORT)) for engine in engines)
        assert [one.tokens for one in fast] == [one.tokens for one in slow]
        for one, same in zip(fast, slow, strict=True):
            assert one.log_probs == pytest.approx(same.log_probs, abs=1e-4)
        assert engines[0].prompt_tokens == engines[1].prompt_tokens > 0
        told.append([one.tokens for one in fast])
        for adapter, seed in zip(adapters.values(), (3, 4), strict=True):  # what a step of learning does
            with torch.no_grad():
                for own, other in zip(adapter.parameters, random_adapter(packed, seed).parameters, strict=True):
                    own.copy_(other)
    base = slice(8, 10)  # the third request's samples
    assert told[0][base] == told[1][base]
    assert told[0][:8] != told[1][:8]


def test_a_sample_does_not_depend_on_what_else_is_asked_or_on_the_slots() -> None:
    _, packed = tiny()
    together = ContinuousEngine(packed, slots=3).sample(REQUESTS, SHORT)
    for request, group in zip(REQUESTS, together, strict=True):
        (alone,) = ContinuousEngine(packed).sample([request], SHORT)
        assert [one.tokens for one in alone] == [one.tokens for one in group]
    (fewer,) = ContinuousEngine(packed).sample([replace(REQUESTS[1], samples=2)], SHORT)
    assert [one.tokens for one in fewer] == [one.tokens for one in together[1][:2]]
    (other,) = ContinuousEngine(packed).sample([replace(REQUESTS[1], key=(1, 1))], SHORT)
    assert [one.tokens for one in other] != [one.tokens for one in together[1]]


def test_a_prompt_is_read_once_and_what_two_share_is_not_read_again() -> None:
    _, packed = tiny()
    engine = ContinuousEngine(packed, slots=2)
    engine.sample(REQUESTS, SHORT)
    shared = len("a prompt that many begin with, ")
    assert engine.prompt_tokens == sum(len(request.prompt) for request in REQUESTS[:3])
    assert engine.read_tokens == engine.prompt_tokens - shared


@pytest.mark.parametrize(
    ("changes", "must"),
    [
        ({"use_rslora": True}, "must be plain LoRA with one scale and no bias, got use_rslora"),
        ({"alpha_pattern": {"q_proj": 64}}, "got alpha_pattern"),
        ({"bias": "all"}, "got bias"),
        ({"init_lora_weights": "pissa"}, "got init_lora_weights 'pissa'"),
        ({"alora_invocation_tokens": [7, 8]}, "got alora_invocation_tokens"),
        ({"r": "eight"}, "must hold adapter_config.json, with r and lora_alpha"),
        ({"r": 0}, "must have an r of at least 1, got 0"),
        ({"r": None}, "must hold adapter_config.json, with r and lora_alpha"),
    ],
)
def test_an_adapter_that_is_no_plain_one_is_refused(changes: dict[str, Any], must: str, tmp_path: Path) -> None:
    _, packed = tiny()
    random_adapter(packed).save(tmp_path, "tiny")
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    (tmp_path / "adapter_config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(ConfigurationError, match=must):
        Adapter.load(tmp_path, packed.base.shape)


def test_an_adapter_comes_back_from_disk_as_it_was_or_not_at_all(tmp_path: Path) -> None:
    _, packed = tiny("llama grouped tied")
    adapter = random_adapter(packed)
    adapter.save(tmp_path, "tiny")
    again = Adapter.load(tmp_path, packed.base.shape)
    assert all(torch.equal(a, b) for a, b in zip(adapter.parameters, again.parameters, strict=True))
    assert again.scale == adapter.scale
    _, other = tiny("qwen2")
    with pytest.raises(ConfigurationError, match="must have rank 4 on all linear layers of its base"):
        Adapter.load(tmp_path, other.base.shape)
    weights = tmp_path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ConfigurationError, match=r"an adapter must hold .* and adapter_model.safetensors, got"):
        Adapter.load(tmp_path, packed.base.shape)


@pytest.mark.parametrize("sampling", [
    RolloutSampling(temperature=0.7, max_tokens=12),
    RolloutSampling(temperature=1.3, top_p=0.6, max_tokens=12),
    RolloutSampling(temperature=0, max_tokens=12),
])  # fmt: skip
def test_temperature_and_top_p_are_those_of_transformers(sampling: RolloutSampling) -> None:
    from transformers import TemperatureLogitsWarper, TopPLogitsWarper

    model, packed = tiny()
    (group,) = ContinuousEngine(packed).sample([REQUESTS[0]], sampling)
    for one in group:
        prompt = REQUESTS[0].prompt
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*prompt, *one.tokens]])).logits[0][len(prompt) - 1 : -1]
        if sampling.temperature:
            logits = TemperatureLogitsWarper(sampling.temperature)(None, logits)
            logits = TopPLogitsWarper(sampling.top_p)(None, logits)
        else:
            assert list(one.tokens) == logits.argmax(dim=1).tolist()
        told = logits.log_softmax(dim=1).gather(1, torch.tensor(one.tokens)[:, None])[:, 0]
        assert one.log_probs == pytest.approx(told.tolist(), abs=1e-4)


@pytest.mark.parametrize("top_p", [1.0, 0.95])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_is_drawn_alone_as_beside_rows_of_another_spread(dtype: torch.dtype, top_p: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(60, 4000, generator=generator).to(dtype)
    uniforms = torch.rand(60, generator=generator, dtype=torch.float64)
    flat = torch.zeros(1, 4000, dtype=dtype)  # the whole vocabulary is needed for its top_p
    for row, uniform in zip(logits.split(1), uniforms.split(1), strict=True):
        alone = draw(row, uniform, 0.7, top_p)
        beside = draw(torch.cat([row, flat]), uniform.repeat(2), 0.7, top_p)
        assert alone.tokens[0] == beside.tokens[0]
        assert alone.log_probs[0] == beside.log_probs[0]


@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_uniforms_spread_over_tokens_as_the_distribution_says(top_p: float) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(300, generator=generator)
    count = 20_000
    uniforms = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    drawn = draw(logits.expand(count, -1), uniforms, 1.0, top_p)
    shares = torch.bincount(drawn.tokens, minlength=300) / count
    probabilities = logits.softmax(dim=0)
    order = probabilities.argsort(descending=True)
    before = probabilities[order].cumsum(0) - probabilities[order]
    kept = torch.zeros_like(probabilities)
    kept[order[before < top_p]] = probabilities[order[before < top_p]]
    assert torch.allclose(shares, kept / kept.sum(), atol=2 / count)


def ends(pieces: Sequence[str], ending: AnswerEnd) -> int | None:
    """The place of the piece with which the answer ends."""
    said = ["".join(pieces[: count + 1]) for count in range(len(pieces))]
    place = next((place for place, text in enumerate(said) if ending.is_reached(text)), None)
    assert place is None or any(mark in pieces[place] for mark in ending.marks)
    return place


def test_a_fence_closes_only_what_was_opened() -> None:
    def closes(*pieces: str, begun: str = "") -> int | None:
        return ends(pieces, AnswerEnd(begun))

    assert closes("Here:\n", "```", "python\nx", " = 1\n", "``", "`", "\n", "more") == 5
    assert closes("x = 1\n", "```", "\n", begun="```\n") == 1
    assert closes("``", "`\n", "x\n", "```\n") == 3
    assert closes("a ``` b\n", "x = '```'\n", "no fence `here`\n") is None
    assert closes("```x``` is no fence\n", "```\n") is None
    assert closes("```python\n", "s = '''```'''\n", "t\n") is None
    assert closes("~~~\n", "x\n", "```\n", "~~~") == 3
    assert closes("````\n", "```\n", "x\n", "```\n", "````") == 4
    assert closes("```\n", "    ```\n", "```") == 2, "too far to the right"


@pytest.mark.parametrize(
    ("begun", "last"),
    [
        ("```python\n", 1),
        ("```python", 1),
        (" ```python", 1),
        ("Here:\n```\nassert f(", 1),
        ("so\n```\nx\n```\n", None),
    ],
)
def test_an_answer_that_is_begun_in_a_block_ends_with_it(begun: str, last: int | None) -> None:
    assert ends(["\nx\n", "```", "\n"], AnswerEnd(begun, at_fence=False)) == last


SUITE = [
    "```python\n", "x = [1,\n", " 2]\n", "assert f(x) == [\n", "  1]\n",
    "assert f('''\n", "assert''')\n", "# so\n", "assert g(1)\n",
]  # fmt: skip


@pytest.mark.parametrize(("tests", "last"), [(0, None), (1, 4), (2, 6), (3, 8), (4, None)])
def test_an_answer_ends_with_the_line_that_ends_its_last_test(tests: int, last: int | None) -> None:
    ending = AnswerEnd(at_fence=False, tests=tests)
    assert ends(SUITE, ending) == last
    characters = "".join(SUITE)
    assert ends(characters, ending) == (None if last is None else len("".join(SUITE[: last + 1])) - 1)
    if last is not None:
        paid = read_suite(characters, "f").tests[:tests]
        assert read_suite("".join(SUITE[: last + 1]), "f").tests == paid
        assert ends(SUITE[4:], AnswerEnd("".join(SUITE[:4]), at_fence=False, tests=tests)) == last - 4
    two_blocks = [*SUITE[:5], "```\n", "assert f(0) == 0\n", "```\n", "assert f(2) == 1\n"]
    assert ends(two_blocks, ending) == {1: 4, 2: 8}.get(tests), "what stands between blocks is no test"
    assert ends(["```python\n", "def t():\n", "    assert f(1) == 1\n" * 9], ending) is None
    assert ends(["```python\n", "the tests:\n", "assert f(1) == 1\n" * 9], ending) is None, "it does not parse"


def test_a_bare_suite_ends_with_its_last_test_too() -> None:
    """Lines that do not parse are no tests, whatever follows them; a block that is opened later counts alone."""
    ending = AnswerEnd(at_fence=True, tests=2)
    bare = ["assert f(1) == 1\n", "assert f([\n", "  2]) == 2\n", "so assert it\n", "assert f(3) == 3\n", "assert f(4"]
    assert ends(bare, ending) == 2
    paid = read_suite("".join(bare), "f").tests[:2]
    assert read_suite("".join(bare[:3]), "f").tests == paid
    assert ends(["We assert that:\n", "assert f(1) == 1\n", "```\n", "x = 1\n", "assert f(2) == 2\n"], ending) is None


def test_the_engine_ends_an_answer_with_its_last_test_and_at_its_closing_fence() -> None:
    _, packed = tiny()
    fenced = Fenced(packed, "so\n```\nab\n```\nand more")
    sampling = RolloutSampling(temperature=0, max_tokens=40, stop_at_fence=True)
    request = RolloutRequest(text("x"), 1, (0,))
    ((one,),) = fenced.sample([request], sampling)
    assert (TOKENIZER.decode(one.tokens), one.finish) == ("so\n```\nab\n```", "stop")
    ((cut,),) = fenced.sample([request], replace(sampling, max_tokens=5))
    assert (TOKENIZER.decode(cut.tokens), cut.finish) == ("so\n``", "length")
    ((whole,),) = fenced.sample([request], replace(sampling, stop_at_fence=False))
    assert TOKENIZER.decode(whole.tokens, skip_special_tokens=True) == "so\n```\nab\n```\nand more"
    assert whole.finish == "end"
    assert whole.tokens[-1] in packed.ends
    ((inside,),) = fenced.sample([replace(request, begun="```\n")], sampling)
    assert TOKENIZER.decode(inside.tokens) == "so\n```"
    says = Fenced(packed, "```\nassert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3\n```\n")
    ((two,),) = says.sample([replace(request, tests=2)], RolloutSampling(temperature=0, max_tokens=90))
    assert (TOKENIZER.decode(two.tokens), two.finish) == ("```\nassert f(1) == 1\nassert f(2) == 2\n", "stop")


class Fenced(ContinuousEngine):
    """Says one thing, whatever the model thinks."""

    def __init__(self, model: LanguageModel, answer: str) -> None:
        base = model.base
        self._script = [*text(answer), next(iter(model.ends))]

        def head(hidden: torch.Tensor, add: Any = None) -> torch.Tensor:
            self._said += 1
            logits = torch.zeros(len(hidden), base.shape.vocabulary)
            logits[:, self._script[self._said - 1]] = 50.0
            return logits

        super().__init__(model)
        base.head = head  # type: ignore[assignment]  # a script in the place of the model's head

    def sample(self, requests: Any, sampling: Any) -> Any:
        self._said = 0
        return super().sample(requests, sampling)


def test_numbers_that_are_none_and_prompts_without_room_are_refused() -> None:
    model, packed = tiny()
    engine = ContinuousEngine(packed)
    with pytest.raises(ConfigurationError, match="must fit into the 512 positions of qwen2, got 5 \\+ 508"):
        engine.sample([REQUESTS[1]], RolloutSampling(max_tokens=508))
    with pytest.raises(ConfigurationError, match=r"must be one of \[\], got 'coder'"):
        engine.sample([replace(REQUESTS[1], adapter="coder")], SHORT)
    with torch.no_grad():
        model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(PlayerError, match="must give numbers, got NaN"):
        ContinuousEngine(ready(model, TOKENIZER, source="broken", dtype="float32")).sample([REQUESTS[1]], SHORT)


PAIR = [text("one"), text("other")]


class Weighted:
    """Token by token, or with the whole pack in view: the same loss."""

    def __init__(self, weights: list[float], responses: Sequence[Sequence[int]], *, by_token: bool = True) -> None:
        self.by_token = by_token
        self._weights = [torch.full((len(each),), weight) for weight, each in zip(weights, responses, strict=True)]

    def __call__(self, rows: Any, log_probs: torch.Tensor, start: int) -> torch.Tensor:
        weights = torch.cat([self._weights[row] for row in rows])
        return -(weights[start : start + len(log_probs)] * log_probs.exp()).sum()


@pytest.mark.parametrize("by_token", [True, False])
@pytest.mark.parametrize("pack_tokens", [2048, 48])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_the_plain_forward_pass(
    shape: str, pack_tokens: int, by_token: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codea1_env.language_models.learner.CHUNK", {"cpu": 7})
    monkeypatch.setattr("codea1_env.language_models.learner.QUERIES", 5)
    model, packed = tiny(shape)
    adapter = random_adapter(packed)
    beside = with_peft(model, adapter, tmp_path)
    prompt, temperature = text("what is asked"), 0.8
    responses = [text("one"), text("another, longer"), text("x"), text("the last one of them")]
    weights = [1.0, -0.5, 2.0, 0.25]
    objective = Weighted(weights, responses, by_token=by_token)
    found = Learner(packed.base, adapter, pack_tokens).learn(prompt, responses, objective, temperature)

    for name, parameter in beside.named_parameters():
        parameter.requires_grad_("lora" in name)
    loss = torch.zeros(())
    for row, response in enumerate(responses):
        logits = beside(input_ids=torch.tensor([[*prompt, *response]])).logits[0][len(prompt) - 1 : -1] / temperature
        scores = logits.log_softmax(dim=1)
        told = scores.gather(1, torch.tensor(response)[:, None])[:, 0]
        assert torch.allclose(found.log_probs[row], told.detach(), atol=1e-4)
        assert torch.allclose(found.entropies[row], -(scores.exp() * scores).sum(dim=1).detach(), atol=1e-3)
        loss = loss - (weights[row] * told.exp()).sum()
    loss.backward()
    plain = Learner(packed.base, adapter, pack_tokens).log_probs(prompt, responses, temperature, of_base=True).log_probs
    for row, response in enumerate(responses):
        with torch.no_grad(), beside.disable_adapter():
            logits = beside(input_ids=torch.tensor([[*prompt, *response]])).logits[0][len(prompt) - 1 : -1]
        told = (logits / temperature).log_softmax(dim=1).gather(1, torch.tensor(response)[:, None])[:, 0]
        assert torch.allclose(plain[row], told, atol=1e-4)
        assert not torch.allclose(plain[row], found.log_probs[row], atol=1e-2), "the adapter changes nothing"
    expected = {
        name.replace(".default", ""): parameter.grad
        for name, parameter in beside.named_parameters()
        if parameter.requires_grad
    }
    with torch.no_grad():
        for pairs in adapter.pairs:
            for a, b in pairs.values():
                a.copy_(a.grad), b.copy_(b.grad)
    ours = dict(adapter.named())
    assert expected.keys() == ours.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        assert torch.allclose(ours[name], gradient, atol=2e-4 * largest), name


def test_sampler_and_learner_agree_in_bfloat16(tmp_path: Path) -> None:
    packed = ready(random_model("qwen2"), TOKENIZER, source="tiny", dtype="bfloat16")
    adapter = random_adapter(packed)
    asked = [replace(request, adapter="seat") for request in REQUESTS]
    found = ContinuousEngine(packed, {"seat": adapter}).sample(asked, SHORT)
    for request, group in zip(asked, found, strict=True):
        told = Learner(packed.base, adapter).log_probs(request.prompt, [one.tokens for one in group]).log_probs
        for one, values in zip(group, told, strict=True):
            # Random weights as large as these round coarsely.
            assert float((values - torch.tensor(one.log_probs)).abs().mean()) < 0.2


def held(place: Any) -> int:
    """Bytes of all tensors below an object, each counted once."""
    found: dict[int, int] = {}

    def look(at: Any) -> None:
        if isinstance(at, torch.Tensor):
            place = id(at) if at.is_mkldnn else at.untyped_storage().data_ptr()
            found[place] = at.numel() * at.element_size() if at.is_mkldnn else at.untyped_storage().nbytes()
        elif isinstance(at, list | tuple):
            for one in at:
                look(one)
        elif isinstance(at, dict | MappingProxyType):
            look(list(at.values()))
        elif type(at).__module__.startswith("codea1_env"):
            look([getattr(at, name) for name in getattr(at, "__slots__", ())])
            look(getattr(at, "__dict__", {}))

    look(place)
    return sum(found.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_the_weights_are_there_once_whether_it_samples_or_learns(shape: str) -> None:
    stored = random_model(shape).bfloat16()
    packed = ready(stored, TOKENIZER, source="tiny", dtype="float32")
    head, embedding = stored.lm_head.weight, stored.model.embed_tokens.weight
    others = sum(weights.numel() for weights in stored.model.parameters()) - embedding.numel()
    positions = 2 * packed.base.context * packed.base.shape.head
    once = 4 * (others + head.numel() + positions) + 2 * embedding.numel()
    adapter = random_adapter(packed)
    engine = ContinuousEngine(packed, {"seat": adapter})
    assert held(packed.base) == once
    for _ in range(2):
        engine.sample([replace(REQUESTS[1], adapter="seat")], SHORT)
        assert held(packed.base) == once
        Learner(packed.base, adapter).learn(text("question"), PAIR, Weighted([1.0, 2.0], PAIR))
        assert held(packed.base) == once


def test_the_file_of_the_weights_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.language_models.loading.has_bfloat16", lambda device: True)
    random_model("qwen2").bfloat16().save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert loaded.base.dtype is torch.bfloat16
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_what_is_learnt_does_not_depend_on_what_was_sampled_before() -> None:
    found = []
    for samples_first in (False, True):
        _, packed = tiny()
        adapter = random_adapter(packed)
        if samples_first:
            ContinuousEngine(packed, {"seat": adapter}).sample([replace(REQUESTS[0], adapter="seat")], SHORT)
        Learner(packed.base, adapter).learn(text("question"), PAIR, Weighted([1.0, 2.0], PAIR))
        found.append([parameter.grad for parameter in adapter.parameters])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_weights_that_are_stored_in_fewer_bits_give_the_same_samples_as_widened_ones() -> None:
    stored = random_model("qwen2 tied").bfloat16()
    narrow = ready(stored, TOKENIZER, source="tiny", dtype="float32")
    wide = ready(stored.float(), TOKENIZER, source="tiny", dtype="float32")
    assert ContinuousEngine(narrow).sample(REQUESTS, SHORT) == ContinuousEngine(wide).sample(REQUESTS, SHORT)


def test_a_long_prompt_takes_its_room_for_its_own_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.language_models.continuous.SHORTEST", 64)
    _, packed = tiny()
    engine, rooms = ContinuousEngine(packed), []
    make = engine.cache
    monkeypatch.setattr(engine, "cache", lambda *room: rooms.append(room) or make(*room))
    asked = [replace(REQUESTS[0], prompt=text("a long question. " * 10), samples=1), replace(REQUESTS[1], samples=20)]
    found = engine.sample(asked, SHORT)
    (slots, positions), (fewer, further) = rooms
    assert positions <= 64 < further
    assert fewer < slots
    assert engine.prompt_tokens == sum(len(request.prompt) for request in asked)
    alone = [ContinuousEngine(packed).sample([request], SHORT)[0] for request in asked]
    assert [[one.tokens for one in group] for group in found] == [[one.tokens for one in group] for group in alone]


def test_a_cache_that_is_let_go_of_is_gone_and_batches_of_other_shapes_share_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("codea1_env.language_models.continuous.SHORTEST", 64)
    made: list[weakref.ref[Any]] = []
    zeros = torch.zeros

    def remembered(*size: Any, **options: Any) -> torch.Tensor:
        tensor = zeros(*size, **options)
        if tensor.dim() == 1 and tensor.numel() > 10_000:
            made.append(weakref.ref(tensor))
        return tensor

    _, packed = tiny()
    engine = ContinuousEngine(packed)
    asked = [replace(REQUESTS[0], prompt=text("a long question. " * 10), samples=1), replace(REQUESTS[1], samples=20)]
    monkeypatch.setattr(torch, "zeros", remembered)
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            engine.sample(asked, SHORT)
        assert sum(one() is not None for one in made) == 1
        assert len(made) <= 2
        engine.release()
        assert not any(one() is not None for one in made)
    finally:
        gc.enable()


def test_an_engine_on_a_processor_keeps_no_cache_while_others_learn() -> None:
    _, packed = tiny()
    engine = ContinuousEngine(packed)
    before = held(engine)
    found = engine.sample(REQUESTS, SHORT)
    assert held(engine) > before
    engine.release()
    assert held(engine) <= before
    assert engine.sample(REQUESTS, SHORT) == found


def changed(directory: Path, name: str, **values: Any) -> Path:
    file = directory / name
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
    return directory


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tiny_chat_model.save(tmp_path / "model")


def test_a_directory_is_loaded_with_what_ends_its_answers(saved: Path) -> None:
    model = load(saved, dtype="float32")
    assert model.ends == {1}
    assert model.digest == load(saved, dtype="float32").digest
    assert model.base.shape.layers == 2


def test_what_cannot_be_taken_is_refused_in_one_line(saved: Path, tmp_path: Path) -> None:
    def refused(source: Path, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message) as error:
            load(source)
        assert "\n" not in str(error.value)

    refused(tmp_path / "none", "must be a directory or a .gguf file, got .*none: there is none")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "must hold a config.json, got none")
    (tmp_path / "text.gguf").write_text("no model")
    refused(tmp_path / "text.gguf", "must be a directory or a .gguf file, got .* which does not begin like one")
    refused(gguf(tmp_path / "a.gguf", "mamba", template=True), "must be of the families qwen2 or llama, got 'mamba'")
    refused(gguf(tmp_path / "b.gguf", "qwen2", template=False), "must have a chat template")
    for family, scaling, tensor, got in (
        ("qwen2", "yarn", "", "rotary positions without scaling in a .gguf file, got scaling of the kind 'yarn'"),
        ("llama", "", "rope_freqs.weight", "without scaling in a .gguf file, got scaling by rope_freqs.weight"),
        ("llama", "none", "blk.0.attn_q.bias", "must be without biases in a .gguf file of the Llama family"),
    ):
        refused(gguf(tmp_path / "c.gguf", family, template=True, scaling=scaling, tensor=tensor), got)
        read_gguf_header.cache_clear()  # of a file that another one replaces at once
    (tmp_path / "cut.gguf").write_bytes((tmp_path / "a.gguf").read_bytes()[:-1])
    refused(tmp_path / "cut.gguf", "must have a whole header, got .*cut.gguf: ")
    (saved / "chat_template.jinja").rename(tmp_path / "aside")
    refused(saved, "must have a chat template")
    (tmp_path / "aside").rename(saved / "chat_template.jinja")
    refused(changed(saved, "config.json", use_sliding_window=True), "must have no use_sliding_window, got True")
    refused(changed(saved, "config.json", use_sliding_window=False, is_causal=False), "must be causal, got is_causal")
    refused(changed(saved, "config.json", model_type="gpt2"), "must be of the families qwen2 or llama, got 'gpt2'")
    for broken in ("{", "[" * 100_000):
        (saved / "config.json").write_text(broken)
        refused(saved, "must have a readable config.json")
    (saved / "config.json").write_text("{}")
    for header in (b"[" * 100_000, b'{"a": {"data_offsets": [0, "9"]}}'):
        (saved / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
        refused(saved, "must have whole files of weights, got .*: its header cannot be read")
    (saved / "model.safetensors").unlink()
    (saved / "model.safetensors.index.json").write_text("[" * 100_000)
    refused(saved, "must have an index of its weights, got .*: RecursionError")


UNREADABLE = "a config.json, tokenizer and chat template that can be read, got .*: "


@pytest.mark.parametrize(
    ("file", "broken", "why"),
    [
        ("config.json", {"num_hidden_layers": 3}, "all weights that its config.json asks for, got .* without model"),
        ("config.json", {"hidden_size": 64}, "weights of the sizes in its config.json, got .* of .* and not "),
        ("config.json", {"hidden_size": "many"}, UNREADABLE),
        ("config.json", {"vocab_size": 200}, "weights of the sizes in its config.json, got .* of .* and not "),
        ("tokenizer.json", "{", UNREADABLE),
        ("tokenizer.json", None, UNREADABLE),
        ("chat_template.jinja", "{% for %}", UNREADABLE + "Template"),
        ("model.safetensors", "cut", "(whole files of )?weights.*, got .*: "),
    ],
)
@pytest.mark.parametrize("reader", [load, HuggingFacePlayer.load])
def test_a_model_that_is_not_whole_is_refused_and_not_made_up(
    saved: Path, reader: Any, file: str, broken: Any, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if isinstance(broken, dict):
        changed(saved, file, layer_types=None, **broken)
    elif broken is None:
        (saved / file).unlink()
    else:
        (saved / file).write_text(broken)
    with pytest.raises(ConfigurationError, match=f"^the model.* must have {why}") as error:
        reader(saved)
    assert "\n" not in str(error.value)
    assert str(saved) in str(error.value)
    assert "LOAD REPORT" not in capfd.readouterr().err


def test_a_player_of_a_repository_out_of_reach_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_pretrained(**_: object) -> None:
        raise OSError("We could not connect.\nCheckout your internet connection.")

    monkeypatch.setattr("codea1_env.language_models.loading.AutoTokenizer.from_pretrained", from_pretrained)
    with pytest.raises(ConfigurationError, match=r"the model of no/model must .*connect. Checkout your") as error:
        HuggingFacePlayer.load("no/model")
    assert "\n" not in str(error.value)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(saved: Path) -> None:
    record = json.loads((saved / "tokenizer.json").read_text())
    record["model"]["vocab"]["more"] = 261
    (saved / "tokenizer.json").write_text(json.dumps(record))
    with pytest.raises(ConfigurationError, match="must have a vocab_size of at least its tokenizer's, 262, got 261 in"):
        load(saved)


def gguf(file: Path, family: str, *, template: bool, scaling: str = "", tensor: str = "") -> Path:
    """The beginning of such a file: with rotary positions scaled so, and with a tensor."""
    keys = {"general.architecture": family} | ({"tokenizer.chat_template": "{{ x }}"} if template else {})
    keys |= {f"{family}.rope.scaling.type": scaling} if scaling else {}
    return write_header(file, keys, {tensor: [4]} if tensor else {})


PLACES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.layers": "blk",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}  # fmt: skip
"""Names of weights in transformers and in .gguf files."""


def whole_gguf(file: Path, model: Any) -> Path:
    """A tiny Qwen2 model with its tokenizer, as llama.cpp's converter writes it."""
    import gguf

    config, tokenizer = model.config, tiny_chat_model.tiny_tokenizer()
    writer = gguf.GGUFWriter(file, "qwen2")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    words = [*sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__), "ab", "cd"]
    words += [f"[PAD{place}]" for place in range(len(words), config.vocab_size)]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in tiny_chat_model.SPECIAL else 1 for word in words])
    writer.add_token_merges(["a b", "c d"])  # its reader takes no fewer
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(0)
    writer.add_chat_template(tiny_chat_model.TEMPLATE)
    for name, weights in model.state_dict().items():
        for ours, theirs in PLACES.items():
            name = name.replace(ours, theirs)
        writer.add_tensor(name, weights.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.mark.parametrize("family", sorted(SHAPES))
def test_weights_are_counted_as_the_model_has_them(family: str, tmp_path: Path) -> None:
    model = random_model(family)
    model.config.save_pretrained(tmp_path)
    shape = shape_of(PretrainedModel(str(tmp_path)))
    assert shape.parameters == sum(weights.numel() for weights in model.parameters())
    adapters = peft.get_peft_model(model, peft.LoraConfig(r=3, target_modules="all-linear", task_type="CAUSAL_LM"))
    trained = sum(weights.numel() for weights in adapters.parameters() if weights.requires_grad)
    assert shape.adapter_parameters(LoraPreset(rank=3)) == trained


def test_a_gguf_file_with_too_few_positions_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gguf", reason="the extra `gguf` is not installed")
    model = tiny_chat_model.tiny_model()
    model.config.max_position_embeddings = 128
    file = whole_gguf(tmp_path / "tiny.gguf", model)
    problems = str(Path(codea1_env.__file__).parent / "problems" / "bundled.jsonl")
    with pytest.raises(SystemExit):
        parse_arguments("", ["--preset", "0.5b", "--model", str(file), "--problems", problems])
    said = capsys.readouterr().err
    assert "--model must have qwen2.context_length for the coder's prompt and response, " in said
    assert f"got 128 in {file}" in said


def test_a_configuration_of_no_heads_is_no_plan(tmp_path: Path) -> None:
    random_model("llama").config.save_pretrained(tmp_path)
    record = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**record, "num_attention_heads": 0}))
    with pytest.raises(ConfigurationError, match="or there is no plan, got"):
        shape_of(PretrainedModel(str(tmp_path)))
    record.pop("num_key_value_heads")
    (tmp_path / "config.json").write_text(json.dumps(record))
    assert shape_of(PretrainedModel(str(tmp_path))).key_value_heads == 4, "as Llama's default is"


def test_a_gguf_file_is_planned_from_its_header_and_read_whole(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the extra `gguf` is not installed")
    model = tiny_chat_model.tiny_model()
    model.resize_token_embeddings(280)
    file = whole_gguf(tmp_path / "tiny.gguf", model)
    before = weights_hash(file)
    shape = shape_of(PretrainedModel(str(file)))
    assert (shape.hidden, shape.layers, shape.heads, shape.key_value_heads) == (32, 2, 2, 1)
    assert (shape.vocabulary, shape.tied) == (280, False)
    assert shape.parameters == sum(weights.numel() for weights in model.parameters())
    read = load(file, dtype="float32")
    assert torch.equal(read.base.norm, model.model.norm.weight)
    assert HuggingFacePlayer.load(file)._engine is not None, "what is read of it is no quantised model"
    random_adapter(read).save(tmp_path / "adapter", str(file))
    assert HuggingFacePlayer.load(tmp_path / "adapter")._engine is not None
    file.write_bytes(file.read_bytes()[:-1000])
    assert weights_hash(file) != before
    with pytest.raises(ConfigurationError, match="must have "):
        load(file)


@pytest.mark.parametrize("seat", ["coder", "tester"])
def test_the_adapters_among_the_examples_fit_their_base_and_change_it(seat: str) -> None:
    qwen = Sizes(24, 896, 14, 2, 64, 4864, 151_936, 1e-6)
    directory = Path(__file__).parents[1] / "examples" / "adapters" / seat
    if not (directory / WEIGHTS).is_file():
        pytest.skip("the weights are in the repository, and not in the archive of the sources")
    adapter = Adapter.load(directory, qwen)
    assert adapter.rank == 8
    assert all(bool(b.abs().max() > 0) for pairs in adapter.pairs for _, b in pairs.values())


def beside(base: Path, directory: Path, record: str) -> Path:
    """An adapter of that base, with that text as its base.json."""
    random_adapter(load(base)).save(directory, str(base))
    (directory / "base.json").write_text(record)
    return directory


def test_an_adapter_of_a_repository_goes_with_other_weights_and_warns(
    saved: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    digest, run = load(saved).digest, replace(load_preset("0.5b"), model=PretrainedModel(str(saved)))
    for name, there in (("same", digest), ("other", "0" * 16)):
        directory = beside(saved, tmp_path / name, json.dumps({"base": "some/repository", "digest": there}))
        for use in (HuggingFacePlayer.load, lambda directory: seat_model(directory, run)):
            caplog.clear()
            use(directory)
            warned = [record.getMessage() for record in caplog.records]
            assert warned == [
                f"the base of {directory} has the digest {digest}, and the adapter learnt beside weights of "
                f"some/repository with the digest {there}: its answers are not those that were measured"
            ] * (there != digest)


def test_an_adapter_in_its_bases_own_directory_is_never_left_out(saved: Path, tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", shutil.copytree(saved, tmp_path / "both")
    for directory in (alone, both):
        random_adapter(load(saved)).save(directory, str(saved))
    request, greedy = CoderRequest(bundled_problems()[0]), Sampling(temperature=0, max_tokens=12)
    answers = [
        HuggingFacePlayer.load(directory, dtype="float32", prompt=lambda _: [{"role": "user", "content": "f"}])
        .respond([request], sampling=greedy)[0][0]
        .text
        for directory in (saved, alone, both)
    ]
    assert answers[1] == answers[2] != answers[0]
    with pytest.raises(ConfigurationError, match=r"must be a model or an adapter beside its base, got a model with"):
        load(both)
    (both / "model.safetensors").unlink()
    assert base_of(both) == str(saved), "with a configuration and without weights it is an adapter"


def test_adapters_beside_copies_of_the_runs_base_share_it(saved: Path, tmp_path: Path) -> None:
    """A copy that is gone, too: what counts is the digest."""
    run = replace(load_preset("0.5b"), model=PretrainedModel(str(saved)))
    digest = shared_base(saved, run).model.digest
    adapters = [
        beside(saved, tmp_path / f"{number}", json.dumps({"base": str(copy), "digest": digest}))
        for number, copy in enumerate((saved, shutil.copytree(saved, tmp_path / "copy"), tmp_path / "gone"))
    ]
    assert len({id(seat_model(adapter, run).shared) for adapter in adapters}) == 1


@pytest.mark.parametrize(
    ("record", "must"),
    [
        (json.dumps({"base": "/gone", "digest": "0" * 16}), "the base of .* must have the digest 0{16}, got "),
        *((text, "base.json must name `base` and `digest` of an adapter's base, got ") for text in ("{", "[]", "{}")),
    ],
)
def test_an_adapter_of_another_base_or_of_none_is_not_played(
    saved: Path, tmp_path: Path, record: str, must: str
) -> None:
    with pytest.raises(ConfigurationError, match=must) as error:
        HuggingFacePlayer.load(beside(saved, tmp_path / "adapter", record))
    assert "\n" not in str(error.value)


def test_an_adapter_of_a_run_is_played_from_any_directory(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(saved.parent)
    shared = shared_base(Path(saved.name), load_preset("0.5b"))
    shared.adapters["coder"] = random_adapter(shared.model, 1)
    SeatModel(shared, "coder").save_pretrained(tmp_path / "final")
    monkeypatch.chdir(tmp_path / "final")
    assert base_of(tmp_path / "final") == str(saved)
    noted = json.loads((tmp_path / "final" / "adapter_config.json").read_text())
    assert noted["base_model_name_or_path"] == str(saved), "for PEFT"
    old = {**noted, "base_model_name_or_path": saved.name}  # as runs wrote it until 2026-11-25
    (tmp_path / "final" / "adapter_config.json").write_text(json.dumps(old))
    assert base_of(tmp_path / "final") == str(saved)


@pytest.mark.parametrize("seat", ["coder", "tester"])
def test_the_adapters_among_the_examples_name_the_digest_of_their_base(seat: str) -> None:
    directory = Path(__file__).parents[1] / "examples" / "adapters" / seat
    base, digest = base_and_digest(directory)
    assert base == base_of(directory)
    assert f"digest {digest} " in (directory.parent / "README.md").read_text()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("by_token", [True, False])
def test_a_gpu_samples_and_learns_as_a_processor_does(by_token: bool) -> None:
    # Prompts that begin alike, rows that leave, a batch with several adapters: what a recorded step could get wrong.
    model, responses = random_model("qwen2"), [text("one"), text("another, longer"), text("x")]
    adapted = [replace(request, adapter="one") for request in REQUESTS]
    drawn, told, gradients = [], [], []
    for device in ("cpu", "cuda"):
        packed = ready(model, TOKENIZER, source="tiny", dtype="float32", device=device)
        adapter = random_adapter(packed)
        engine = ContinuousEngine(packed, {"one": adapter}, slots=3)
        drawn.append(
            [one for asked in (REQUESTS, adapted, REQUESTS + adapted) for one in flat(engine.sample(asked, SHORT))]
        )
        objective = Weighted([1.0, -0.5, 2.0], responses, by_token=by_token)
        told.append(Learner(packed.base, adapter).learn(text("a question"), responses, objective, 0.8).log_probs)
        gradients.append([parameter.grad.cpu() for parameter in adapter.parameters])
    for one, other in zip(*drawn, strict=True):
        assert one.tokens == other.tokens
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
    torch.testing.assert_close(told[0], told[1], atol=1e-4, rtol=1e-4)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=2e-4 * float(one.abs().max() + 1e-3), rtol=1e-3)
