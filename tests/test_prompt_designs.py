"""Prompts as data: bundled designs, files of one's own, and answers that the prompt begins."""

import dataclasses
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_openai import Json, Reply, completion, serving

from codea1_env import players
from codea1_env.cli import main
from codea1_env.errors import ConfigurationError
from codea1_env.players import CoderRequest, OpenAIPlayer, Request, TesterRequest
from codea1_env.players.chat import chat_messages
from codea1_env.players.prompts import DEFAULT, design_names, find_prompts, prompts_from, text_digest
from codea1_env.players.templates import ROLES, Messages, Prompts, begun, end_of_block
from codea1_env.problems import read_problems
from codea1_env.problems.jsonl import write_problems
from codea1_env.problems.problem import Problem
from codea1_env.reading.responses import read_program, read_suite
from codea1_env.reading.test_case import TestCase

SQUARE = Problem("square", "Square x, be it {program} or {'a': 1}.", "square", starter_code="def square(x):")
WRONG = "def square(x):\n    return x + x\n"


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    return str(file)


def asked(design: Prompts) -> dict[str, list[dict[str, str]]]:
    """The conversation of every role."""
    return {
        "coder": design.for_coder(SQUARE),
        "repair": design.for_repair(SQUARE, WRONG, "assert square(3) == 9"),
        "tester": design.for_tester(SQUARE, WRONG, suite_size=3),
        "black_box": design.for_tester(SQUARE, WRONG, suite_size=3, access="black-box"),
        "unit_tests": design.for_unit_tests(SQUARE, WRONG, suite_size=3),
    }


@pytest.mark.parametrize("name", design_names())
def test_every_design_asks_in_all_roles_and_says_what_the_problem_says(name: str) -> None:
    design = find_prompts(name)
    assert design.name == name
    conversations = asked(design)
    assert set(conversations) == set(ROLES)
    for role, messages in conversations.items():
        rest = begun(messages)
        assert rest.messages[-1]["role"] == "user", "what an assistant says at the end is the answer's beginning"
        turns = [each["role"] for each in rest.messages if each["role"] != "system"]
        assert turns == ["user", "assistant"] * (len(turns) // 2) + ["user"]
        text = "\n".join(each["content"] for each in messages)
        if role != "unit_tests":
            assert SQUARE.question in text, "with its braces"
        if role in ("tester", "unit_tests", "repair"):
            assert WRONG.strip() in text
        if role == "black_box":
            assert "x + x" not in text
        if role in ("tester", "black_box", "unit_tests"):
            assert "3 tests" in rest.messages[-1]["content"]


@pytest.mark.parametrize("name", design_names())
def test_an_answer_that_goes_on_where_the_prompt_stops_is_read(name: str) -> None:
    design = find_prompts(name)
    for role, messages in asked(design).items():
        rest = begun(messages)
        if role in ("coder", "repair"):
            said = "def square(x):\n    return x * x\n```\nThat is all."
            said = said if rest.is_in_fence else f"```python\n{said}"
            assert read_program(rest.whole(said), "square").source.strip() == "def square(x):\n    return x * x"
        else:
            said = "3) == 9\nassert square(0) == 0\n```\n" if rest.is_in_fence else "```python\nassert square(3) == 9\n"
            suite = read_suite(rest.whole(said), "square")
            assert [test.reason for test in suite.tests] == [""] * (2 if rest.is_in_fence else 1)


def test_the_default_changes_on_purpose_only() -> None:
    """Figures that were measured with it stand in the documentation."""
    assert text_digest(find_prompts(DEFAULT)) == "fad695a9fec6ac39"


def test_evalplus_form_is_to_the_letter() -> None:
    """Published figures stand beside what is measured with it: two sentences of EvalPlus, Apache-2.0."""
    problem = Problem("p", "\ndef f(x):\n    pass\n\n", "f")
    assert find_prompts("evalplus").for_coder(problem) == [
        {
            "role": "user",
            "content": "Please provide a self-contained Python script that solves the following problem in a markdown "
            "code block:\n```\ndef f(x):\n    pass\n```\n",
        },
        {
            "role": "assistant",
            "content": "Below is a Python script with a self-contained function that solves the problem and passes "
            "corresponding tests:\n```python\n",
        },
    ]


def test_worked_examples_are_earlier_turns_with_as_many_tests_as_they_show() -> None:
    system, question, answer, real = find_prompts("example").for_tester(SQUARE, WRONG, suite_size=3)
    assert [each["role"] for each in (system, question, answer, real)] == ["system", "user", "assistant", "user"]
    assert "Write 8 tests" in question["content"]
    assert "Write 3 tests" in real["content"]
    assert answer["content"].count("assert ") == 8
    suite = read_suite(answer["content"], "count_long")
    assert [test.reason for test in suite.tests] == [""] * 8, "what it shows can be read"


def test_a_file_says_what_it_changes_and_the_rest_is_the_extended_designs(tmp_path: Path) -> None:
    file = written(tmp_path, "coder: evalplus\ntester:\n  system: Be brief.\nextends: begun\n")
    mine, base = find_prompts(file), find_prompts("begun")
    assert mine.name == "mine"
    assert mine.coder == find_prompts("evalplus").coder
    assert mine.tester == dataclasses.replace(base.tester, system="Be brief.")
    assert mine.black_box == base.black_box
    as_json = tmp_path / "mine.json"
    as_json.write_text(json.dumps({"extends": "begun", "coder": "evalplus", "tester": {"system": "Be brief."}}))
    assert find_prompts(str(as_json)) == mine


def test_a_design_that_changes_every_role_keeps_the_rest_of_each() -> None:
    for name in ("example", DEFAULT):
        base = find_prompts(name)
        changes = {role: {"user": list(getattr(base, role).user)} for role in ROLES}
        assert prompts_from({"name": name, "extends": name, **changes}, "mine.yaml") == base
    assert prompts_from({"name": DEFAULT, **changes}, "mine.yaml") == base


@pytest.mark.parametrize("name", design_names())
def test_a_design_is_plain_data_and_back(name: str) -> None:
    design = find_prompts(name)
    assert prompts_from(json.loads(json.dumps(dataclasses.asdict(design))), "a run's configuration") == design
    assert text_digest(dataclasses.replace(design, name="other")) == text_digest(design)
    assert (text_digest(design) == text_digest(find_prompts(DEFAULT))) == (name == DEFAULT)


def test_a_repair_of_an_answer_that_was_begun_is_a_turn_after_it() -> None:
    request = CoderRequest(SQUARE, WRONG, "assert square(3) == 9")
    messages = chat_messages(request, prompts=find_prompts("evalplus"))
    assert [each["role"] for each in messages] == ["user", "assistant", "user"]
    assert WRONG.strip() in messages[1]["content"]


def test_a_request_is_put_in_the_design_that_is_given() -> None:
    paper = find_prompts("paper")
    assert chat_messages(TesterRequest(SQUARE, WRONG), 4, paper) == paper.for_tester(SQUARE, WRONG, suite_size=4)


def test_the_papers_design_has_the_released_outline_and_none_of_its_words() -> None:
    """github.com/ZJU-REAL/Code-A1: a system message for each seat; the tester's user message has five headed parts and
    three numbered points; the coder is shown the question last."""
    conversations = asked(find_prompts("paper"))
    for role in ("coder", "tester", "black_box"):
        system, user = conversations[role]
        assert (system["role"], user["role"]) == ("system", "user")
        assert len(system["content"].split()) < 10
        assert "assistant" not in system["content"]
    for role in ("tester", "black_box"):
        lines = conversations[role][1]["content"].splitlines()
        assert [line for line in lines if line.startswith("# ")] == [
            "# Role", "# Task", "# Strategy", "# Context", "# Output Format",
        ]  # fmt: skip
        assert [line[:2] for line in lines if line[:1].isdigit()] == ["1.", "2.", "3."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- coder", "must be a mapping of roles to templates, got ['coder']"),
        ("codr: evalplus", "a key must be one of extends, coder, repair, tester, black_box, unit_tests, got 'codr'"),
        ("extends: nosuch", "extends must be one of begun, brief, codea1, evalplus,"),
        ("coder: nosuch", "coder must be one of begun, brief, codea1, evalplus,"),
        ("coder: [a]", "coder must be a design's name or a mapping of fields to texts, got ['a']"),
        ("coder: {users: a}", "coder: a key must be one of user, system, response, examples, got 'users'"),
        ("coder: {user: 3}", "coder.user must be a list, got 3"),
        ("coder: {user: ['{question}', 3]}", "coder.user must be text, got 3"),
        ("coder: {user: ['']}", "coder.user must be a text or a list of texts, got nothing"),
        ("coder: {user: Write it}", "coder.user must name {question}, got a template without it"),
        ("tester: {user: '{question}'}", "tester.user must name {program}, got a template without it"),
        ("coder: {user: '{qestion}'}", "coder.user must name only {question}, {entry_point}, {starter_code}, "),
        ("black_box: {user: '{question} {program}'}", "black_box.user must name only"),
        ("tester: {response: 'assert {name}('}", "tester.response must name only"),
        ("tester: {system: 'Test {entry_point}.'}", "tester.system must name nothing in braces, got entry_point"),
        ("repair: {system: Be kind.}", "repair must have user and response only"),
        ("tester: {examples: [{question: q}]}", "tester.examples: entry_point must be text, got None"),
        ("tester: {examples: [{q: q}]}", "tester.examples must have question, entry_point, answer, program, got"),
        ("coder: *anchor", "must be a readable YAML file"),
    ],
)
def test_a_wrong_template_is_refused_in_one_line(text: str, message: str, tmp_path: Path, capsys: Any) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as error:
        find_prompts(file)
    assert message in str(error.value)
    assert file in str(error.value)
    assert "\n" not in str(error.value)
    assert main(["eval", "--player", "hf:nowhere", "--problems", "bundled", "--prompts", file]) == 2
    assert message in capsys.readouterr().err, "before a model is looked for"


def test_prompts_without_a_model_that_reads_them_are_refused(tmp_path: Path, capsys: Any) -> None:
    assert main(["eval", "--player", "oracle", "--problems", "bundled", "--prompts", "paper"]) == 2
    assert "--prompts must come with a player hf:MODEL or vllm:MODEL or openai:URL#MODEL, got oracle" in (
        capsys.readouterr().err
    )
    assert main(["tournament", "--coder", "m=oracle", "--tester", "golden", "--prompts", "paper"]) == 2
    assert "got oracle, golden" in capsys.readouterr().err
    assert main(["eval", "--player", "hf:x", "--problems", "bundled", "--prompts", "nosuch"]) == 2
    assert "prompts must be one of begun, brief, codea1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("```python\nx = 1\n```\nand more", "```python\nx = 1\n```"),
        ("```python\nx = 1\n```", None),
        ("```python\nx = '''\n```python\n'''\n", None),
        ("```python\nx = 1\n``` \n", "```python\nx = 1\n``` "),
        ("First:\n```\na\n```\n```python\nb\n```\n", "First:\n```\na\n```"),
        ("no block\n", None),
        ("````python\n```\n````\nx", "````python\n```\n````"),
    ],
)
def test_a_block_ends_where_its_fence_stands_alone_on_a_whole_line(text: str, end: str | None) -> None:
    place = end_of_block(text)
    assert (text[:place] if place is not None else None) == end


def test_an_answer_without_a_beginning_is_what_was_said() -> None:
    rest = begun([{"role": "user", "content": "?"}])
    assert not rest.is_in_fence
    assert rest.whole("```python\n1\n```\nmore") == "```python\n1\n```\nmore"
    prose = begun([{"role": "user", "content": "?"}, {"role": "assistant", "content": "Well, "}])
    assert not prose.is_in_fence
    assert prose.whole("```\n1\n```\nmore") == "Well, ```\n1\n```\nmore"


def test_a_server_is_asked_to_go_on_and_what_was_begun_is_given_back(tmp_path: Path) -> None:
    def answer(request: Json, number: int) -> Reply:
        return Reply(body=completion(*["def f(x):\n    return x\n"] * request["n"]))

    out = tmp_path / "out"
    problems = tmp_path / "mine.jsonl"
    write_problems(problems, [Problem("same", "Give x back.", "f", "def f(x): return x", (TestCase("f(1)", "1"),))])
    with serving(answer) as server:
        command = [
            "eval",
            "--player",
            f"openai:{server.url}#m",
            "--problems",
            str(problems),
            "--n",
            "2",
            "-o",
            str(out),
        ]
        assert main([*command, "--prompts", "evalplus"]) == 0
        (sent,) = server.asked
        assert main([*command, "--prompts", "codea1"]) == 2, "another design is another evaluation"
    design = find_prompts("evalplus")
    assert sent["messages"] == design.for_coder(read_problems(problems)[0])
    assert (sent["continue_final_message"], sent["add_generation_prompt"], sent["stop"]) == (True, False, ["\n```\n"])
    report = json.loads((out / "results.json").read_text())
    assert report["prompts"] == "evalplus"
    assert report["sets"]["mine"]["passed"] == {"same": 2}
    answers = json.loads((out / "journal.jsonl").read_text().splitlines()[1])
    assert answers["texts"][0].endswith("```python\ndef f(x):\n    return x\n")


def test_an_answer_that_was_begun_in_a_block_ends_with_it_whatever_is_said_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "x):\n    return x\n``` \nOr:\n```python\ndef f(x):\n    return 2\n```\n"  # not the text that it stops at

    def asks(request: Request) -> Messages:
        return [{"role": "user", "content": "f?"}, {"role": "assistant", "content": "```python\ndef f("}]

    class Engine:
        def chat(self, *_: object, **__: object) -> list[Any]:
            return [SimpleNamespace(outputs=[SimpleNamespace(text=said, finish_reason="stop")])]

    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=SimpleNamespace))
    monkeypatch.setitem(sys.modules, "vllm.platforms", SimpleNamespace(current_platform=None))
    offline = runpy.run_path(str(Path(players.__file__).with_name("vllm_offline.py")))["VLLMPlayer"]
    with serving(lambda request, number: Reply(body=completion(said))) as server:
        for player in (OpenAIPlayer(server.url, "m", prompt=asks), offline(Engine(), name="vllm", prompt=asks)):
            ((answer,),) = player.respond([CoderRequest(SQUARE)])
            assert answer.text.rstrip() == "```python\ndef f(x):\n    return x\n```"


def test_a_server_is_asked_plainly_in_the_default_design(tmp_path: Path) -> None:
    def answer(request: Json, number: int) -> Reply:
        return Reply(body=completion("```python\nassert f(1) == 1\n```"))

    problem = Problem("same", "Give x back.", "f", "def f(x): return x")
    with serving(answer) as server:
        OpenAIPlayer(server.url, "m").respond([CoderRequest(problem), TesterRequest(problem, "def f(x): return 1")])
    assert all({"stop", "continue_final_message", "add_generation_prompt"}.isdisjoint(sent) for sent in server.asked)
