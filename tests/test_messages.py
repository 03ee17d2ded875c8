"""An answer in the form of a chat API is read to its text, by one reader; what is no answer is refused everywhere."""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from double_question import DOUBLE, RIGHT, SQUARE

from codea1_env.adapters.trl_environments import TesterSeat
from codea1_env.adapters.trl_rewards import CoderRewardFunction, TesterRewardFunction
from codea1_env.arena.arena import Arena
from codea1_env.errors import Codea1Error, ConfigurationError, FormatError, PlayerGarbled
from codea1_env.evaluation.wrong_programs import read_programs
from codea1_env.players import CoderRequest, GoldenTester, RecordedPlayer
from codea1_env.players.completions import read_completions
from codea1_env.reading.messages import answer_text
from codea1_env.records.matches import read_match
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.sandbox import LocalSandbox

SUITE = "assert double(3) == 6\nassert double(2) == 4"


class Dumped:
    """As the objects of `openai` and pydantic are."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self._fields


def assistant(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def text_part(text: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": text}


THOUGHT = {"type": "thinking", "thinking": "hm"}
FORMS: dict[str, Callable[[str], Any]] = {
    "text": lambda text: text,
    "message": assistant,
    "messages": lambda text: [assistant(text)],
    "tuple": lambda text: (assistant(text),),
    "without role": lambda text: {"content": text},
    "text parts": lambda text: [assistant([text_part(text)])],
    "several parts": lambda text: [assistant([text_part(text[:7]), text_part(text[7:])])],
    "output_text": lambda text: [assistant([{**text_part(text, "output_text"), "annotations": []}])],
    "thinking": lambda text: assistant([THOUGHT, text_part(text)]),
    "redacted": lambda text: assistant([{"type": "redacted_thinking", "data": "x"}, text_part(text)]),
    "reasoning beside": lambda text: assistant(text, reasoning_content="hm", reasoning="hm", refusal=None),
    "reasoning item": lambda text: [
        {"type": "reasoning", "summary": [], "content": [text_part("hm", "reasoning_text")]},
        {"type": "message", "role": "assistant", "content": [text_part(text, "output_text")]},
    ],
    "after a tool": lambda text: [
        assistant(None, tool_calls=[{"id": "1"}]),
        {"role": "tool", "content": "42"},
        assistant(text),
    ],
    "before a tool": lambda text: [assistant(text), {"role": "tool", "content": "42"}],
    "after a question": lambda text: [{"role": "user", "content": "?"}, assistant(text)],
    "parts alone": lambda text: [text_part(text)],
    "part with a value": lambda text: assistant([{"type": "text", "text": {"value": text, "annotations": []}}]),
    "tool use": lambda text: assistant([text_part(text), {"type": "tool_use", "name": "x", "input": {}}]),
    "refusal part": lambda text: assistant([{"type": "refusal", "refusal": text}]),
    "refusal": lambda text: assistant(None, refusal=text),
    "gemini": lambda text: {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]},
    "object": lambda text: Dumped(role="assistant", content=text, refusal=None, tool_calls=None),
    "object of objects": lambda text: [Dumped(role="assistant", content=[Dumped(type="text", text=text)])],
}
WITHOUT_TEXT = {
    "content None": [assistant(None)],
    "a call alone": assistant(None, tool_calls=[{"id": "1"}]),
    "a call without content": {"role": "assistant", "tool_calls": [{"id": "1"}]},
    "a thought alone": assistant([THOUGHT]),
    "an empty text": [assistant("")],
}
UNKNOWN = {
    "None": None,
    "a list of texts": ["x"],
    "a list of lists": [["x"]],
    "nothing": [],
    "an empty mapping": {},
    "another mapping": {"answer": "x"},
    "a number": 3,
    "a truth": True,
    "bytes": b"x",
    "a content of texts": [assistant(["x"])],
    "a content that is a mapping": assistant({"text": "x"}),
    "a content that is a number": [assistant(3)],
    "an image": [assistant([{"type": "image_url", "image_url": {"url": "x"}}])],
    "a part of another kind": [assistant([{"type": "poem", "text": "x"}])],
    "a part without text": [assistant([{"type": "text"}])],
    "a part whose text is None": assistant([text_part(None)]),  # type: ignore[arg-type]
    "a part whose type is a list": assistant([{"type": ["text"], "text": "x"}]),
    "a user": [{"role": "user", "content": "x"}],
    "a tool": {"role": "tool", "content": "x"},
    "a role that is a list": [{"role": ["assistant"], "content": "x"}],
    "a message and a text": [assistant("x"), "y"],
    "a class": Dumped,
    "a named tuple": namedtuple("Two", "a b")("x", "y"),
}


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with Arena(LocalSandbox(), RewardConfig(replay_limit=0)) as made:  # what one test books changes no other
        yield made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ["def f(x):\n    return x\n", "", "<|im_end|>"])
def test_every_form_of_a_chat_api_is_read_to_its_text(form: str, text: str) -> None:
    assert answer_text(FORMS[form](text), "answer") == text


@pytest.mark.parametrize("form", WITHOUT_TEXT)
def test_a_message_without_text_is_an_empty_answer(form: str) -> None:
    assert answer_text(WITHOUT_TEXT[form], "answer") == ""


@pytest.mark.parametrize("form", UNKNOWN)
@pytest.mark.parametrize("error", [ConfigurationError, FormatError])
def test_another_form_is_refused_and_never_empty(form: str, error: type[Codea1Error]) -> None:
    with pytest.raises(
        error, match=r"^the answer must be a text or .*, got .*; give the answer's text itself$"
    ) as told:
        answer_text(UNKNOWN[form], "the answer", error)
    assert len(str(told.value)) < 500


def test_a_long_answer_of_another_form_is_told_in_short() -> None:
    with pytest.raises(ConfigurationError) as told:
        answer_text([["x" * 100_000]], "answer")
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("form", FORMS)
def test_rewards_of_trl_read_both_seats_answers_in_every_form(arena: Arena, form: str) -> None:
    put = FORMS[form]
    given = {"problem_id": ["double"] * 2}
    assert CoderRewardFunction(arena, [DOUBLE], GoldenTester())([""] * 2, [put(RIGHT), put("nonsense(")], **given) == [
        1.0,
        0.0,
    ]
    paid = TesterRewardFunction(arena, [DOUBLE])([""] * 2, [put(SUITE)] * 2, program=[put(SQUARE), put(RIGHT)], **given)
    assert paid == [3 / 16, 2 / 16], "2 valid of 8; one of them kills the square"
    shown = TesterSeat(arena, [DOUBLE]).reset(problem_id="double", program=put(SQUARE))
    assert SQUARE.strip() in shown


@pytest.mark.parametrize("form", UNKNOWN)
def test_rewards_of_trl_refuse_another_form_from_either_seat(arena: Arena, form: str) -> None:
    bad = UNKNOWN[form]
    coder, tester = CoderRewardFunction(arena, [DOUBLE], GoldenTester()), TesterRewardFunction(arena, [DOUBLE])
    ids = ["double"] * 2
    with pytest.raises(ConfigurationError, match=r"completions\[1\] must be a text or"):
        coder([""] * 2, [RIGHT, bad], problem_id=ids)
    with pytest.raises(ConfigurationError, match=r"completions\[1\] must be a text or"):
        tester([""] * 2, [SUITE, bad], problem_id=ids, program=[RIGHT, RIGHT])
    with pytest.raises(ConfigurationError, match=r"program\[0\] must be a text or"):
        tester([""] * 2, [SUITE, SUITE], problem_id=ids, program=[bad, RIGHT])
    with pytest.raises(ConfigurationError, match="program of the data set must be a text or"):
        TesterSeat(arena, [DOUBLE]).reset(problem_id="double", program=bad)


def line(codes: Any, suites: Any) -> bytes:
    problem = {"problem_id": "double", "question": "Q", "entry_point": "double", "reference_solution": RIGHT}
    return json.dumps({**problem, "codes": codes, "suites": suites}).encode()


@pytest.mark.parametrize("form", [form for form in FORMS if "object" not in form])
def test_files_of_recorded_outputs_are_read_in_every_form(form: str, tmp_path: Path) -> None:
    put = FORMS[form]
    record = line([put(SQUARE), put(RIGHT)], [[put(SUITE)], []])
    match = read_match(record)
    assert (match.codes, match.suites) == ((SQUARE, RIGHT), ((SUITE,), ()))
    path = tmp_path / "programs.jsonl"
    path.write_bytes(record + b"\n")
    assert read_programs(path) == {"double": [SQUARE, RIGHT]}
    player = RecordedPlayer.from_records([json.loads(record)])
    assert [answer.text for answer in player.respond([CoderRequest(DOUBLE)], 2)[0]] == [SQUARE, RIGHT]
    assert dict(player.suites) == {("double", SQUARE): [SUITE], ("double", RIGHT): []}


@pytest.mark.parametrize("form", [form for form in UNKNOWN if form not in ("bytes", "a class")])
def test_files_of_recorded_outputs_refuse_another_form(form: str, tmp_path: Path) -> None:
    bad = UNKNOWN[form]
    with pytest.raises(FormatError, match=r"codes\[1\] must be a text or"):
        read_match(line([RIGHT, bad], [[], []]))
    with pytest.raises(FormatError, match=r"suites\[0\]\[1\] must be a text or"):
        read_match(line([RIGHT], [[SUITE, bad]]))
    with pytest.raises(ConfigurationError, match=r"codes of double\[0\] must be a text or"):
        RecordedPlayer.from_records([json.loads(line([bad], [[SUITE]]))])
    path = tmp_path / "programs.jsonl"
    path.write_bytes(line([bad], [[]]) + b"\n")
    with pytest.raises(FormatError, match=r"line 1: codes\[0\] must be a text or"):
        read_programs(path)


@pytest.mark.parametrize("form", ["text parts", "several parts", "thinking", "refusal part", "reasoning beside"])
def test_a_servers_message_may_have_parts(form: str) -> None:
    made = FORMS[form]("words")
    message = made[0] if isinstance(made, list) else made
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    assert [each.text for each in read_completions(body).found] == ["words"]


@pytest.mark.parametrize("content", [3, {"text": "x"}, ["x"], [{"type": "image_url"}], [[]], True])
def test_a_servers_message_of_another_form_is_garbled(content: Any) -> None:
    body = json.dumps({"choices": [{"message": assistant(content), "finish_reason": "stop"}]}).encode()
    with pytest.raises(PlayerGarbled, match="must answer with a message whose content is text"):
        read_completions(body)
