"""How questions and programs are put to a run's models: which messages, and what becomes of those that are too long."""

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from codea1_env import Arena, ConfigurationError, TestCase
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.options import Options
from codea1_env.configuration.presets import MINI, SMOKE, load_preset, preset_from_dict
from codea1_env.players import prompts
from codea1_env.players.player import CoderRequest
from codea1_env.players.prompts import find_prompts
from codea1_env.players.templates import begun
from codea1_env.problems.families.miniature import miniature_problems
from codea1_env.training.models.chat import Prompter, chat_of, fitting, tokens_of
from codea1_env.training.models.sampling import load_model
from codea1_env.training.policies.policy import Frozen
from codea1_env.training.round.past_opponents import PastOpponents
from codea1_env.training.round.rounds import ReadProgram
from codea1_env.training.round.written_tests import Demonstrations, WrittenSuite, write_suites
from codea1_env.training.samples import Prompt, SamplerSettings, SeatRun, Tokens, answers

PROBLEMS = miniature_problems("train", 6, 0)
LONG = dataclasses.replace(PROBLEMS[0], problem_id="long", question="sum of the numbers " * 100)
INSTRUCT = dataclasses.replace(MINI, model=PretrainedModel("somewhere"))
BEGUN = dataclasses.replace(chat_of(INSTRUCT), prompts=find_prompts("begun"))
HOW = SamplerSettings(8, 1.0, seed=0)
ONE = "def f(xs): return 1"


@pytest.fixture(scope="module")
def tokenizer(base: Path) -> Any:
    return AutoTokenizer.from_pretrained(base)


def limited(**tokens: int) -> Any:
    return preset_from_dict({"round": tokens}, SMOKE)


class Echo(list[Prompt]):
    """A model that answers every prompt with the prompt's own first tokens, and keeps the prompts."""

    def answer(self, prompts: Sequence[Prompt], n: int, how: SamplerSettings) -> list[list[Tokens]]:
        self.extend(prompts)
        return [[Tokens(prompt.tokens[:3])] * n for prompt in prompts]

    def let_go(self) -> None:
        pass


def test_the_model_decides_which_messages_are_used() -> None:
    problem, tiny, instruct = PROBLEMS[0], chat_of(MINI), chat_of(INSTRUCT)
    blind = [chat_of(dataclasses.replace(each, options=Options(access="black-box"))) for each in (MINI, INSTRUCT)]
    assert tiny.coder(problem) == [{"role": "system", "content": "code"}, {"role": "user", "content": problem.question}]
    assert tiny.tester(problem, "P")[1]["content"] == f"{problem.question}\nP"
    assert blind[0].tester(problem, "P")[1]["content"] == f"{problem.question}\n"
    asked, size = find_prompts(prompts.DEFAULT), MINI.reward.suite_size
    assert instruct.coder(problem) == asked.for_coder(problem)
    assert instruct.tester(problem, "P") == asked.for_tester(problem, "P", suite_size=size)
    assert blind[1].tester(problem, "P") == asked.for_tester(problem, "P", suite_size=size, access="black-box")


def test_a_pretrained_model_is_asked_what_the_preset_says_and_the_run_records_the_words(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("coder: evalplus\ntester: {response: 'assert {entry_point}('}\n")
    config = tmp_path / "config.yaml"
    config.write_text(f"extends: smoke\nmodel: {{pretrained: somewhere}}\nprompts: {tmp_path / 'mine.yaml'}\n")
    preset, mine = load_preset(None, config), find_prompts(str(tmp_path / "mine.yaml"))
    assert preset.prompts == mine
    assert chat_of(preset).coder(PROBLEMS[0]) == mine.for_coder(PROBLEMS[0])
    begins = {"role": "assistant", "content": f"assert {PROBLEMS[0].entry_point}("}
    assert chat_of(preset).tester(PROBLEMS[0], "P")[-1] == begins
    recorded = preset.to_dict()
    assert recorded["prompts"]["tester"]["response"] == "assert {entry_point}("
    (tmp_path / "mine.yaml").unlink()
    assert preset_from_dict(recorded, MINI) == preset, "a run goes on with the words that it began with"
    assert "prompts" not in MINI.to_dict(), "a model built from nothing has its own"


def test_an_answer_that_was_begun_is_read_whole_and_learnt_without_its_beginning(tokenizer: Any) -> None:
    asked = Prompter(BEGUN, tokenizer).tester([(PROBLEMS[0], ONE)])
    ((sample, _),) = answers(Echo(), tokenizer, asked, 2, HOW)
    begins = f"```python\nassert {PROBLEMS[0].entry_point}("
    assert tokenizer.decode(sample.prompt).endswith(tokenizer.decode(tokenizer(begins)["input_ids"]))
    assert sample.text == begins + tokenizer.decode(sample.tokens, skip_special_tokens=True)
    assert sample.tokens == sample.prompt[:3], "what the model itself said"
    chat = dataclasses.replace(BEGUN, prompts=find_prompts("evalplus"))
    for prompt, problem in zip(Prompter(chat, tokenizer).coder(PROBLEMS[:2]), PROBLEMS, strict=False):
        own = tokenizer(begun(chat.coder(problem)).answer, add_special_tokens=False)["input_ids"]
        assert own
        assert list(prompt.tokens[-len(own) :]) == own, "a coder goes on there, too: nothing is closed behind it"


@pytest.mark.parametrize("design", ["codea1", "begun"])
def test_supervised_rows_begin_where_the_prompt_stops(design: str, tokenizer: Any, tmp_path: Path) -> None:
    name = PROBLEMS[0].entry_point
    suite = WrittenSuite(PROBLEMS[0], ONE, (TestCase(f"{name}([1])", "1"),))
    chat = dataclasses.replace(BEGUN, prompts=find_prompts(design))
    ((row,),) = [Demonstrations([suite], Prompter(chat, tokenizer), tmp_path).batch(0, 1)]
    learnt = tokenizer.decode(row.sample.tokens, skip_special_tokens=True)
    assert learnt.startswith("[1]) == 1" if design == "begun" else f"assert {name}([1]) == 1")
    assert row.sample.tokens[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(row.sample.prompt + row.sample.tokens, skip_special_tokens=True).count("[1]) == 1") == 1


def test_a_question_with_too_long_a_prompt_is_left_out(tokenizer: Any, base: Path, tmp_path: Path, caplog: Any) -> None:
    endless = dataclasses.replace(LONG, question="word " * 50_000)
    assert fitting(SMOKE, [*PROBLEMS, LONG, endless], base) == [*PROBLEMS, LONG], "what the model's context leaves"
    left = SMOKE.model.context - SMOKE.grpo.tokens("coder")
    assert f"1 of 8 questions are left out: prompts over {left} tokens" in caplog.text
    with pytest.raises(ConfigurationError, match=rf"must fit into the {SMOKE.model.context} positions of the model"):
        load_model(base, SMOKE).sampler(HOW).coder([CoderRequest(endless)], 1)
    longest = max(len(tokens_of(tokenizer, chat_of(SMOKE).coder(problem))) for problem in PROBLEMS)
    with caplog.at_level(logging.WARNING):
        able = fitting(limited(coder_prompt_tokens=longest), [LONG, *PROBLEMS], base)
    assert able == [*PROBLEMS], "at the limit, all but the long one"
    assert f"1 of 7 questions are left out: prompts over {longest} tokens" in caplog.text
    with pytest.raises(ConfigurationError, match=r"at least those of a round \(2\), got 0 of 7; raise round.coder_pro"):
        fitting(limited(coder_prompt_tokens=3), [LONG, *PROBLEMS], base)
    refusing = AutoTokenizer.from_pretrained(base)
    raises = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    refusing.chat_template = raises + "{{ messages[0].content }}"
    refusing.save_pretrained(tmp_path)
    limits = {"model": {"context": 8192}, "round": {"coder_prompt_tokens": 4096, "questions": 2}}
    preset = preset_from_dict(limits, INSTRUCT)
    with pytest.raises(ConfigurationError, match="must take messages of the roles system, user, got: System role not"):
        fitting(preset, PROBLEMS, tmp_path)


def test_a_program_with_too_long_a_prompt_keeps_its_place_and_is_not_attacked(base: Path) -> None:
    tokenizer, chat = AutoTokenizer.from_pretrained(base), chat_of(SMOKE)
    programs = [(problem, ONE) for problem in (PROBLEMS[0], LONG, PROBLEMS[1])]
    lengths = [len(tokens_of(tokenizer, chat.tester(*each))) for each in programs]
    prompter, model = Prompter(chat, tokenizer, longest=max(lengths[0], lengths[2])), Echo()
    asked = prompter.tester(programs)
    sampled = answers(model, tokenizer, asked, 2, HOW)
    assert [[sample.text is None for sample in row] for row in sampled] == [[False] * 2, [True] * 2, [False] * 2]
    assert model == [asked[0], asked[2]]
    # A policy whose ranks must all sample as many rows asks it, too: something short, and nothing is cut.
    assert asked[1].tokens == (tokenizer.eos_token_id,)
    assert [len(each.tokens) for each in prompter.tester(programs, longest=0)] == lengths
    tokenizer.eos_token = None  # as some have it, whose model's configuration says what ends an answer
    assert all(each.tokens for each in Prompter(chat, tokenizer, longest=1).tester(programs)), "no empty rows"


def test_a_tester_that_does_not_learn_is_not_asked_beyond_its_limit(tokenizer: Any, tmp_path: Path, sandbox) -> None:
    """The one that writes tests once, and a past one."""
    chat, model = chat_of(SMOKE), Echo()
    limit = len(tokens_of(tokenizer, chat.tester(LONG, ""))) - 1
    prompter, preset = Prompter(chat, tokenizer, limit), limited(tester_prompt_tokens=limit)
    coder, tester = (Frozen(each, tokenizer, "tester", HOW, lambda index: index) for each in (Echo(), model))
    assert [each.fits for each in prompter.tester([(PROBLEMS[0], ONE), (LONG, ONE)])] == [True, False]
    arena, past = Arena(sandbox), dataclasses.replace(preset, options=Options(opponents="uniform"))
    written = write_suites(coder, tester, arena, prompter, [PROBLEMS[0], LONG], preset.round)
    run = SeatRun(past, tmp_path, tmp_path / "tester", 0)
    opponents = PastOpponents(run, {}, arena, prompter, lambda role, directory: model)
    programs = [ReadProgram(problem, ONE, ONE) for problem in (LONG, PROBLEMS[0])]
    long, fitted = opponents.play(0, programs, (), ()).suites
    assert {suite.problem for suite in written} == {PROBLEMS[0]}
    assert (len(long), len(fitted)) == (0, past.options.past(preset.round.suites))
    assert [prompt.fits for prompt in model] == [True, True], "once in each way"
