"""What a page says that a program returned: short, plain, and nothing that a program wrote there can harm."""

import json

import pytest

from codea1_env.judging.returned import MOST_BYTES, NOT_PLAIN, cut, returned_text
from codea1_env.sandbox.protocol import Outcome, OutcomeKind


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(OutcomeKind.VALUE, b'{"t":[1,"a"]}'), "(1, 'a')"),
        (Outcome(OutcomeKind.VALUE, b'{"o":"object"}'), NOT_PLAIN),
        (Outcome(OutcomeKind.VALUE, b'"' + b"x" * MOST_BYTES + b'"'), f"<a value of {MOST_BYTES + 2} bytes>"),
        (Outcome(OutcomeKind.ERROR, error="KeyError"), "KeyError"),
        (Outcome(OutcomeKind.MEMORY), "<memory>"),
        (Outcome(OutcomeKind.TIMEOUT), "<timeout>"),
        (Outcome(OutcomeKind.CRASH, tried=False), "<not tried>"),
    ],
)
def test_an_outcome_is_one_short_text(outcome: Outcome, text: str) -> None:
    assert returned_text(outcome) == text


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"[" * 2000,
        b"\xff\xfe{",
        b"NaN",
        b"1e999",
        b'{"t":7}',
        b'{"i":5}',
        b'{"d":[1]}',
        b'{"f":[]}',
        b'{"q":1}',
        b"{}",
    ],
)
def test_what_a_program_wrote_itself_is_never_an_error(written: bytes) -> None:
    assert returned_text(Outcome(OutcomeKind.VALUE, written)) == NOT_PLAIN


def test_no_text_is_longer_than_its_bytes_and_a_few() -> None:
    value = json.dumps(["\x00" * 300]).encode()  # the encoding is longer than the source
    assert len(returned_text(Outcome(OutcomeKind.VALUE, value))) <= MOST_BYTES + 8
    assert cut("abcdef", 3) == "abc … [3 more characters]"
