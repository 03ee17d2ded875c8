"""How questions and programs are put to a run's models: which messages, and what becomes of those that are too long."""

import dataclasses
import logging
import types
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from transformers import AutoTokenizer

from codea1_env.arena.arena import Arena
from codea1_env.errors import ConfigurationError
from codea1_env.players import prompts
from codea1_env.players.player import TesterRequest
from codea1_env.players.prompts import find_prompts
from codea1_env.players.templates import begun
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.reading.test_case import TestCase
from codea1_env.sandbox import open_sandbox
from codea1_env.training.baselines.sft import IGNORED, _tokens
from codea1_env.training.baselines.written_tests import WrittenSuite, write_suites
from codea1_env.training.config.options import Options
from codea1_env.training.config.presets import MINI, SMOKE, PretrainedModel, load_preset, preset_from_dict
from codea1_env.training.grpo.past_opponents import PastOpponents
from codea1_env.training.grpo.sampled import SampledResponse
from codea1_env.training.grpo.seats import sample_suites
from codea1_env.training.grpo.trainer import SeatTrainer
from codea1_env.training.models.chat import chat_of, fitting, questions_asked, tokens_of
from codea1_env.training.models.sampling import Sampler
from codea1_env.training.models.warm_start import base_model
from codea1_env.training.round.rounds import attacks_of, schedule
from codea1_env.training.run.callbacks import SeatRun

PROBLEMS = miniature_problems("train", 6, 0)
LONG = dataclasses.replace(PROBLEMS[0], problem_id="long", question="sum of the numbers " * 100)
INSTRUCT = dataclasses.replace(MINI, model=PretrainedModel("somewhere"))


@pytest.fixture(scope="module")
def base(bases: Path) -> Path:
    return base_model(SMOKE, bases)


def limited(coder: int = 0, tester: int = 0) -> Any:
    shape = dataclasses.replace(SMOKE.round, coder_prompt_tokens=coder, tester_prompt_tokens=tester)
    return dataclasses.replace(SMOKE, round=shape)


def test_the_model_decides_which_messages_are_used() -> None:
    problem, tiny, instruct = PROBLEMS[0], chat_of(MINI), chat_of(INSTRUCT)
    blind = Options(access="black-box")
    assert tiny.coder(problem) == [
        {"role": "system", "content": "code"},
        {"role": "user", "content": problem.question},
    ]
    assert tiny.tester(problem, "P")[1]["content"] == f"{problem.question}\nP"
    assert (
        chat_of(dataclasses.replace(MINI, options=blind)).tester(problem, "P")[1]["content"] == f"{problem.question}\n"
    )
    asked, size = find_prompts(prompts.DEFAULT), MINI.reward.suite_size
    assert instruct.coder(problem) == asked.for_coder(problem)
    assert instruct.tester(problem, "P") == asked.for_tester(problem, "P", suite_size=size)
    assert chat_of(dataclasses.replace(INSTRUCT, options=blind)).tester(problem, "P") == asked.for_tester(
        problem, "P", suite_size=size, access="black-box"
    )


def test_a_pretrained_model_is_asked_what_the_preset_says_and_the_run_records_the_words(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("coder: evalplus\ntester: {response: 'assert {entry_point}('}\n")
    config = tmp_path / "config.yaml"
    config.write_text(f"extends: smoke\nmodel: {{pretrained: somewhere}}\nprompts: {tmp_path / 'mine.yaml'}\n")
    preset = load_preset(None, config)
    mine = find_prompts(str(tmp_path / "mine.yaml"))
    assert preset.prompts == mine
    assert chat_of(preset).coder(PROBLEMS[0]) == mine.for_coder(PROBLEMS[0])
    assert chat_of(preset).tester(PROBLEMS[0], "P")[-1] == {
        "role": "assistant", "content": f"assert {PROBLEMS[0].entry_point}(",
    }  # fmt: skip
    recorded = preset.to_dict()
    assert recorded["prompts"]["tester"]["response"] == "assert {entry_point}("
    (tmp_path / "mine.yaml").unlink()
    assert preset_from_dict(recorded, MINI) == preset, "a run goes on with the words that it began with"
    assert "prompts" not in MINI.to_dict(), "a model built from nothing has its own"


def test_prompts_that_a_preset_cannot_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"coder.user must name \{question\}, got a"):
        preset_from_dict({"prompts": {"coder": {"user": "Write it."}}}, INSTRUCT)
    with pytest.raises(ConfigurationError, match="prompts must be one of begun, brief, codea1, evalplus"):
        preset_from_dict({"prompts": "nosuch"}, INSTRUCT)
    by_test = {"algorithm": {"credit": "test"}, "prompts": "begun"}
    with pytest.raises(ConfigurationError, match=r"algorithm.credit must be suite where prompts.tester.re"):
        preset_from_dict(by_test, INSTRUCT)


def test_an_answer_that_was_begun_is_read_whole_and_learnt_without_its_beginning(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    chat = dataclasses.replace(chat_of(INSTRUCT), prompts=find_prompts("begun"))
    (attack,) = attacks_of(PROBLEMS[:1], ["def f(xs): return 1"])
    trainer = Echo(tokenizer)
    ((sampled, _),) = sample_suites(trainer, [attack], 2, chat)
    begins = f"```python\nassert {PROBLEMS[0].entry_point}("
    shown = tokenizer.decode(sampled.prompt)
    assert shown.endswith(tokenizer.decode(tokenizer(begins)["input_ids"]))
    assert sampled.text == begins + tokenizer.decode(sampled.response, skip_special_tokens=True)
    assert sampled.response == sampled.prompt[:3], "what the model itself said"


def test_trl_goes_on_where_the_coders_answer_was_begun(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    asked = [find_prompts("evalplus").for_coder(problem) for problem in PROBLEMS[:2]]
    trainer = types.SimpleNamespace(processing_class=tokenizer)
    prompts, images, others = SeatTrainer._tokenize_prompts(trainer, asked)
    assert (prompts, images, others) == ([tokens_of(tokenizer, each) for each in asked], None, {})
    begins = tokenizer(begun(asked[0]).answer, add_special_tokens=False)["input_ids"]
    assert all(prompt[-len(begins) :] == begins for prompt in prompts), "and nothing is closed behind it"


def test_supervised_rows_begin_where_the_prompt_stops(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    name = PROBLEMS[0].entry_point
    suite = WrittenSuite(PROBLEMS[0], "def f(xs): return 1", (TestCase(f"{name}([1])", "1"),))
    chat = chat_of(INSTRUCT)
    for design in ("codea1", "begun"):
        row = _tokens(suite, tokenizer, dataclasses.replace(chat, prompts=find_prompts(design)))
        learnt = [token for token in row["labels"] if token != IGNORED]
        said = tokenizer.decode(learnt, skip_special_tokens=True)
        assert said.startswith("[1]) == 1" if design == "begun" else f"assert {name}([1]) == 1")
        assert tokenizer.decode(row["input_ids"], skip_special_tokens=True).count("[1]) == 1") == 1


def test_without_a_limit_every_question_is_asked_as_scheduled(tmp_path: Path) -> None:
    asked = questions_asked(SMOKE, fitting(SMOKE, [*PROBLEMS, LONG], tmp_path), 3)
    places = schedule(7, SMOKE.rounds, SMOKE.round.questions, 3)
    assert asked == [[*PROBLEMS, LONG][place] for place in places]


def test_a_question_with_too_long_a_prompt_is_left_out_and_counted(
    base: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    chat = chat_of(SMOKE)
    longest = max(len(tokens_of(tokenizer, chat.coder(problem))) for problem in PROBLEMS)
    with caplog.at_level(logging.WARNING):
        asked = questions_asked(SMOKE, fitting(limited(coder=longest), [LONG, *PROBLEMS], base), 3)
    assert asked == questions_asked(SMOKE, PROBLEMS, 3), "at the limit, all but the long one"
    assert f"1 of 7 questions are left out: prompts over {longest} tokens" in caplog.text
    with pytest.raises(ConfigurationError, match=r"at least those of a round \(2\), got 0 of 7; raise round.coder_pro"):
        fitting(limited(coder=3), [LONG, *PROBLEMS], base)


class Echo:
    """A trainer that answers every prompt with the prompt's own first tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.processing_class = tokenizer
        self.seen: list[list[int]] = []

    def sample(self, prompts: list[list[int]], *_: Any) -> list[SampledResponse]:
        self.seen = prompts
        return [SampledResponse(prompt[:3], None) for prompt in prompts]


def test_a_program_with_too_long_a_prompt_keeps_its_place_and_is_not_attacked(base: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    chat = chat_of(SMOKE)
    attacks = attacks_of([PROBLEMS[0], LONG, PROBLEMS[1]], ["def f(xs): return 1"] * 3)
    lengths = [len(tokens_of(tokenizer, chat.tester(attack.problem, attack.program))) for attack in attacks]
    trainer = Echo(tokenizer)
    sampled = sample_suites(trainer, attacks, 2, chat, longest=max(lengths[0], lengths[2]))
    assert [[suite.text is None for suite in row] for row in sampled] == [[False] * 2, [True] * 2, [False] * 2]
    assert len(trainer.seen) == 6, "as many rows as without the limit"
    assert all(prompt == [tokenizer.eos_token_id] for prompt in trainer.seen[2:4]), "nothing is cut"
    assert all(suite.prompt and suite.response for row in sampled for suite in row), "no empty rows in a batch"
    tokenizer.eos_token = None  # as some have it, whose model's configuration says what ends an answer
    assert len(sample_suites(Echo(tokenizer), attacks, 2, chat, longest=1)) == len(attacks)
    unlimited = sample_suites(trainer, attacks, 2, chat)
    assert [len(row[0].prompt) for row in unlimited] == lengths
    assert all(suite.text is not None for row in unlimited for suite in row)


def test_a_tester_that_does_not_learn_is_not_asked_beyond_its_limit_either(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that writes tests once, and a past one."""
    asked: list[str] = []

    def answer(_: Sampler, requests: Sequence[TesterRequest], samples: int) -> list[list[str]]:
        asked.extend(request.problem.problem_id for request in requests)
        return [["assert True"] * samples for _ in requests]

    monkeypatch.setattr(Sampler, "tester", answer)
    tokenizer, chat = AutoTokenizer.from_pretrained(base), chat_of(SMOKE)
    preset = limited(tester=len(tokens_of(tokenizer, chat.tester(LONG, ""))) - 1)
    run = SeatRun(preset, base, tmp_path / "tester", 0)
    with open_sandbox() as sandbox:
        written = write_suites(run, Arena(sandbox), base, [PROBLEMS[0], LONG])
    assert set(asked) == {PROBLEMS[0].problem_id} == {suite.problem.problem_id for suite in written}
    asked.clear()
    past = PastOpponents(
        dataclasses.replace(run, preset=dataclasses.replace(preset, options=Options(opponents="uniform"))), base, base
    )
    programs = attacks_of([LONG, PROBLEMS[0]], ["def f(xs): return 1"] * 2)
    monkeypatch.setattr(
        past, "_sampler", lambda *_: nullcontext(Sampler(None, tokenizer, chat, tokens=8, temperature=1, seed=0))
    )
    long, short = past._suites(0, programs)
    assert (set(asked), long, set(short)) == ({PROBLEMS[0].problem_id}, (), {"assert True"})


def test_a_chat_template_that_refuses_a_message_is_told_in_one_line(base: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
        "{{ messages[0].content }}"
    )
    tokenizer.save_pretrained(tmp_path)
    model = PretrainedModel("somewhere", context=8192)
    shape = dataclasses.replace(INSTRUCT.round, coder_prompt_tokens=4096, questions=2)
    preset = dataclasses.replace(INSTRUCT, model=model, round=shape)
    with pytest.raises(ConfigurationError, match="must take messages of the roles system, user, got: System role not"):
        fitting(preset, PROBLEMS, tmp_path)
