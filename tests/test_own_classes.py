"""A tester reward and a book's policy of one's own, written outside the package against public names only."""

import ast
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import codea1_env
from codea1_env import Arena, BookConfig, BookFormatError, ConfigurationError, Match, MistakeBook, RewardConfig
from codea1_env.arena.diagnostics import diagnose
from codea1_env.cli import main
from codea1_env.configuration.algorithm import Algorithm, located
from codea1_env.configuration.presets import load_preset
from codea1_env.judging.version import VERSION
from codea1_env.records.recording import Recorder, read_recording, replay
from codea1_env.rewards.tester_rewards import per_test_rewards

EXAMPLES = Path(__file__).parents[1] / "examples"
OWN = ("own_reward", "own_coder", "own_book")
GOLDEN = (codea1_env.TestCase("double(5)", "10"),)
PROBLEM = codea1_env.Problem("double", "Twice x.", "double", "def double(x):\n    return 2 * x\n", golden_tests=GOLDEN)
CODES = tuple(f"def double(x):\n    return {body}\n" for body in ("x + x", "x * x", "4"))
SUITES = (("assert double(2) == 4\nassert double(3) == 6", "assert double(2) == 4"), ("assert double(3) == 9",), ())
LINE = ("problem_id", "question", "entry_point", "reference_solution", "golden_tests", "codes", "suites")
REWARDS = [[1.0, 0.0], [0.0], []]
"""By hand: only `x + x` is right. The first suite catches `x * x` on 3 and `4` on 3; the second nobody; the third
accuses the right program."""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory outside the clone, with the examples of own classes in it."""
    for name in OWN:
        shutil.copy(EXAMPLES / f"{name}.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: object, status: int = 0) -> str:
    """What the command, which has imported no own class, says on standard error as it ends with that status."""
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            ended: object = main([*map(str, arguments)])
        except SystemExit as stopped:
            ended = stopped.code
    assert ended == status, said.getvalue()
    return said.getvalue()


def scored(*arguments: object, status: int = 0) -> Any:
    """`codea1 score` of the match below: its record, or what it says where it ends otherwise."""
    line = json.loads(PROBLEM.to_json()) | {"codes": CODES, "suites": SUITES}
    Path("in.jsonl").write_text(json.dumps({name: line[name] for name in LINE}) + "\n")
    said = command("score", "in.jsonl", "-o", "out.jsonl", "--suite-size", 2, "--details", *arguments, status=status)
    return said if status else json.loads(Path("out.jsonl").read_text())


def played(sandbox: Any, config: RewardConfig) -> Any:
    """The match below, recorded in games.jsonl; the recording names the configuration and replays to the same."""
    Path("games.jsonl").unlink(missing_ok=True)
    with Recorder("games.jsonl") as recorder:
        (score,) = Arena(sandbox, config, on_score=recorder.write).play([Match(PROBLEM, CODES, SUITES)])
    (recorded,) = read_recording(Path("games.jsonl").read_bytes().splitlines())
    assert (recorded.config, hash(recorded.config)) == (config, hash(config))
    return score


def suite_rewards(score: Any) -> list[list[float]]:
    rows = score["suites"] if isinstance(score, dict) else score.suites
    return [[suite["reward"] if isinstance(suite, dict) else suite.reward for suite in row] for row in rows]


@pytest.mark.parametrize("name", OWN)
def test_the_examples_use_public_names_only(name: str) -> None:
    path = EXAMPLES / f"{name}.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("codea1_env"):
            assert node.module == "codea1_env"
            assert {alias.name for alias in node.names} <= set(codea1_env.__all__)


def test_rewards_of_ones_own_are_paid_and_replayed(outside: Path, sandbox: Any) -> None:
    own: dict[str, Any] = {"coder_reward": "own_coder:AllOrNothing", "coder_reward_args": {"nothing": -1.0}}
    as_without_it = [[0.5, 0.25], [0.5], []]
    # By its own suites `x * x` passes nothing, for its stated 9 is corrected to 6; by all it passes 2 of 4 tests.
    for config, programs, suites in (
        ({"tester_reward": "own_reward:Reward"}, [1.0, 0.0, 0.0], REWARDS),
        ({"coder_reward": "skill"}, [1.0, 0.5, 0.5], as_without_it),
        (own | {"coder_tests": "union"}, [1.0, -1.0, -1.0], as_without_it),
        (own, [1.0, -1.0, -1.0], as_without_it),
    ):
        score = played(sandbox, RewardConfig(suite_size=2, **config))
        assert [code.reward for code in score.codes] == programs
        assert suite_rewards(score) == suites
        named = [f"--{part.replace('_', '-')}={path}" for part, path in config.items() if str(path).startswith("own_")]
        assert "1 matches played again, 0 with other rewards" in command("replay", "games.jsonl", *named)
    command("view", "games.jsonl", "-o", "page.html")
    text = Path("games.jsonl").read_bytes().replace(b"own_coder:", b"own_other:")
    shutil.copy("own_coder.py", "own_other.py")
    with pytest.raises(ConfigurationError, match="must be imported before"):
        list(replay(read_recording(text.splitlines()), sandbox))
    assert "own_other" not in sys.modules, "a recording alone makes no module be imported"
    command("replay", "games.jsonl", status=2)
    for name in ("", ":"):
        command("replay", "games.jsonl", "--tester-reward", name, status=2)


def test_the_command_takes_rewards_of_ones_own_into_every_process_and_records_their_names(outside: Path) -> None:
    config: dict[str, Any] = {"tester_reward": "own_reward:Reward", "tester_reward_args": {"accusing": -0.5}}
    config |= {"coder_reward": "own_coder:AllOrNothing", "coder_reward_args": {"nothing": -1}}
    told = {f"--{name.replace('_', '-')}": value for name, value in config.items()}
    both = [word if isinstance(word, str) else json.dumps(word) for option in told.items() for word in option]
    record = scored(*both, "--workers", 2)
    assert suite_rewards(record) == [REWARDS[0], [-0.5], []], "what the arguments say"
    assert [code["reward"] for code in record["codes"]] == [1.0, -1, -1]
    assert record["config"].items() >= config.items()
    command("view", "out.jsonl", "-o", "page.html")
    for wrong in ('{"acusing": 1}', "[1]", "{"):
        assert len(scored(*both[:2], "--tester-reward-args", wrong, status=2).splitlines()) <= 3


@pytest.mark.parametrize(
    ("option", "path", "taken", "built_ins"),
    [
        ("tester_reward", "own_reward:Reward", "accusing", ("code-a1", "utrl")),
        ("coder_reward", "own_coder:AllOrNothing", "nothing", ("code-a1", "skill", None)),
        ("policy", "own_book:Recent", "visits", ("counting",)),
    ],
)
def test_arguments_that_no_part_takes_are_refused(option: str, path: str, taken: str, built_ins: Any, outside) -> None:
    def made(path: str, given: Any) -> object:
        named: dict[str, Any] = {option: path, f"{option}_args": given}
        return BookConfig(**named).rule if option == "policy" else RewardConfig(**named).require_parts()

    made(path, {taken: 1})
    for given, must in (
        ({"other": 1}, "be what .* takes"),
        ({taken: object()}, "be what JSON can hold"),
        ({taken: float("nan")}, "be what JSON can hold"),
        ([1], "be a mapping of names to values"),
        ({1: 1}, "be a mapping of names to values"),
    ):
        with pytest.raises(ConfigurationError, match=rf"\A{option}_args must {must}.*, got .*\Z"):
            made(path, given)
    for built_in in built_ins:
        with pytest.raises(ConfigurationError, match=f"{option}_args must come with {option} of your own"):
            made(built_in, {taken: 1})


WRONG_REWARDS = """
from codea1_env import CoderReward, TesterReward
from codea1_env.rewards.terms import RewardParts
import dataclasses, numpy
from fractions import Fraction
class Open(TesterReward): pass
class Alone(TesterReward):
    runs_golden = True
    def suite(self, duel, terms, group): return terms
class Word(TesterReward):
    runs_union = "yes"
    def suite(self, duel, terms, group): return terms
class Pays(TesterReward):
    def __init__(self, config, values): super().__init__(config); self.values = values
    def suite(self, duel, terms, group):
        return dataclasses.replace(terms, **{name: eval(value) for name, value in self.values.items()})
class Says(TesterReward):
    def __init__(self, config, parts="terms", alpha="None", tests="[0] * len(duel.tests)"):
        super().__init__(config); self.said = parts, alpha, tests
    def suite(self, duel, terms, group): return terms
    def parts(self, terms): return super().parts(terms) if self.said[0] == "terms" else eval(self.said[0])
    def effective_alpha(self, terms): return eval(self.said[1])
    def tests(self, duel, terms, group): return eval(self.said[2])
class Coder(CoderReward):
    def __init__(self, config, value): super().__init__(config); self.value = value
    def program(self, result): return eval(self.value)
class Elsewhere(TesterReward):
    coder_reward = 5
    def suite(self, duel, terms, group): return terms
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Reward", "must name a module that can be imported .*no_such_module"),
        ("own_wrong:Missing", "must name a subclass of TesterReward, got 'own_wrong:Missing'"),
        ("json:JSONDecoder", "must name a subclass of TesterReward"),
        ("own_wrong:Open", "must name a class that defines suite"),
        ("own_wrong:Alone", "runs_union must be True with runs_golden, got False"),
        ("own_wrong:Word", "runs_union must be True or False, got 'yes'"),
        ("own_wrong:Elsewhere", "coder_reward of the tester reward must name a coder reward, .*, got 5"),
    ],
)
def test_what_is_no_reward_is_refused_at_once(name: str, message: str, outside: Path, sandbox: Any) -> None:
    (outside / "own_wrong.py").write_text(WRONG_REWARDS)
    with pytest.raises(ConfigurationError, match=message):
        Arena(sandbox, RewardConfig(tester_reward=name))


PARTS_MUST = "says of the parts of a reward must be RewardParts of"
NO_NUMBERS = ("float('nan')", "float('inf')", "-float('inf')", "None", "True", "'1'", "[1.0]", "1j", "10 ** 400",
              "Fraction(10 ** 400)", "numpy.float32('nan')", "numpy.bool_(True)")  # fmt: skip


@pytest.mark.parametrize(
    ("part", "name", "arguments", "must"),
    [
        *[
            ("tester_reward", "Pays", {"values": {term: "VALUE"}}, "pays a suite must be terms with a finite reward")
            for term in ("reward", "adversarial", "validity", "alpha", "f_new", "v")
        ],
        ("tester_reward", "Says", {"parts": "RewardParts(0.0, VALUE)"}, PARTS_MUST),
        ("tester_reward", "Says", {"parts": "VALUE"}, PARTS_MUST),
        ("tester_reward", "Says", {"alpha": "VALUE"}, "says of alpha must be None or a finite number"),
        ("tester_reward", "Says", {"tests": "[0, VALUE]"}, "pays the tests must be 2 numbers"),
        ("tester_reward", "Says", {"tests": "VALUE"}, "pays the tests must be 2 numbers"),
        ("coder_reward", "Coder", {"value": "VALUE"}, "pays a program must be a finite number"),
    ],
)
def test_a_reward_of_no_number_is_no_score(part: str, name: str, arguments: Any, must: str, outside, sandbox) -> None:
    (outside / "own_wrong.py").write_text(WRONG_REWARDS)
    for value in NO_NUMBERS:
        if (arguments, value) == ({"alpha": "VALUE"}, "None"):
            continue  # that is an answer: the reward has no such weight
        given = json.loads(json.dumps(arguments).replace("VALUE", value))
        config, book = RewardConfig(**{part: f"own_wrong:{name}", f"{part}_args": given}), MistakeBook()
        says = rf"\Awhat {part} 'own_wrong:{name}' {must}.*, got .*\Z"
        with Recorder("games.jsonl") as recorder, pytest.raises(ConfigurationError, match=says):
            Arena(sandbox, config, book, on_score=recorder.write).play([Match(PROBLEM, CODES[1:2], SUITES[:1])])
        assert not len(book)
        assert list(read_recording(Path("games.jsonl").read_bytes().splitlines())) == []
        Path("games.jsonl").unlink()


@pytest.mark.parametrize("value", ["numpy.float32(0.5)", "Fraction(1, 2)", "numpy.float16(0.5)"])
def test_a_reward_may_be_any_real_number_and_is_recorded_as_a_float(value: str, outside: Path, sandbox: Any) -> None:
    (outside / "own_wrong.py").write_text(WRONG_REWARDS)
    own = {"tester_reward": "own_wrong:Pays", "tester_reward_args": {"values": {"reward": value}}}
    own |= {"coder_reward": "own_wrong:Coder", "coder_reward_args": {"value": value}}
    score = played(sandbox, RewardConfig(suite_size=2, **own))
    assert [*map(repr, [code.reward for code in score.codes] + suite_rewards(score)[0])] == ["0.5"] * 5
    says = {"parts": f"RewardParts(0.0, {value})", "alpha": value, "tests": f"[{value}] * len(duel.tests)"}
    config = RewardConfig(tester_reward="own_wrong:Says", tester_reward_args=says)
    scores = Arena(sandbox, config).play([Match(PROBLEM, CODES, SUITES)])
    found, row = diagnose(scores, config), scores[0].suites[0]
    assert (repr(found.effective_alpha), repr(found.paid_adversarial)) == ("0.5", "0.5")
    paid = per_test_rewards(row[0].duel, config, row[0].group)
    assert [repr(test.reward) for test in paid or ()] == ["0.5", "0.5"]


NO_KEY = f"{WRONG_REWARDS}class Reward(TesterReward):\n    def suite(self, duel, terms, group): return {{}}['x']\n"
ENDS = NO_KEY.replace("return {}['x']", "raise SystemExit(0)")
MADE = f"{NO_KEY}    def __init__(self, config): raise SystemExit(3)"
BROKEN = {
    "own_part": ("from own_key import Reward", 1, 1, "own_key:Reward.suite, which is not codea1's, raised KeyError"),
    "own_key": (NO_KEY, 2, 1, "own_key:Reward.suite, which is not codea1's, raised KeyError: 'x'"),
    "own_zero": ("1 / 0", 1, 1, "own_zero, which is not codea1's, raised ZeroDivisionError: division by zero"),
    "own_end": (ENDS, 1, 1, "own_end:Reward.suite, which is not codea1's, raised SystemExit: 0"),
    "own_ends": (ENDS, 2, 1, "own_ends:Reward.suite, which is not codea1's, raised SystemExit: 0"),
    "own_made": (MADE, 1, 1, "own_made:Reward.__init__, which is not codea1's, raised SystemExit: 3"),
    "own_exit": ("import sys; sys.exit(0)", 1, 2, "tester_reward must name a module that ends nothing while it is im"),
    "own_def": ("def", 1, 2, "tester_reward must name a module that Python can read, got 'own_def:Reward': invalid"),
}


@pytest.mark.parametrize("module", BROKEN)
def test_an_own_error_is_no_fault_of_codea1(module: str, outside: Path) -> None:
    for name, (text, *_) in BROKEN.items():
        (outside / f"{name}.py").write_text(text)
    _, workers, status, says = BROKEN[module]
    said = scored("--tester-reward", f"{module}:Reward", "--workers", workers, status=status)
    assert said.splitlines()[-1].startswith(f"codea1: {says}")
    assert ("Traceback" in said) == (status == 1)
    assert "fault of codea1" not in said


A, B, C = (codea1_env.TestCase(f"f({i})", str(i)) for i in range(3))
RECENT = BookConfig(policy="own_book:Recent", policy_args={"visits": 3}, capacity=2)


def test_a_policy_of_ones_own_decides_what_is_kept_and_its_book_round_trips_and_names_it(outside: Path) -> None:
    """A failed at the first visit, B at the second, A again at the third. A book alone makes no module be imported."""
    book = MistakeBook(RECENT)
    for passed, failed, again in (([], [A], []), ([A], [B], []), ([B, B], [], [A])):
        book.record("p", passed, failed, failed_replays=again)
    assert (book.replay("p", 8), book.replay("p", 1)) == ((A, B), (A,))
    book.save("book.jsonl")
    header = json.loads(Path("book.jsonl").read_text().splitlines()[0])
    named = {"policy": "own_book:Recent", "policy_args": {"visits": 3}}
    assert header == {"schema": 1, "kind": "mistake_book", **named, "judge": VERSION}
    loaded = MistakeBook.load("book.jsonl", RECENT)
    assert loaded == book == book.copy()
    Path("other.jsonl").write_text(Path("book.jsonl").read_text().replace("own_book:", "own_third:"))
    shutil.copy("own_book.py", "own_third.py")
    with pytest.raises(BookFormatError, match="must be followed by who names it"):
        MistakeBook.load("other.jsonl")
    assert "own_third" not in sys.modules
    assert MistakeBook.load("other.jsonl", BookConfig(policy="own_third:Recent")).replay("p", 1) == (A,)
    for each in (book, loaded):
        each.record("p", [], [C])  # room for two: B failed longest ago
        assert each.replay("p", 8) == (C, A)
        for _ in range(3):
            each.record("p", [], [])
        assert each.replay("p", 8) == (C,)  # A failed four visits ago
    assert loaded == book
    config = MistakeBook.load("book.jsonl").config  # imported already
    assert (config.policy, config.policy_args) == tuple(named.values())
    for wrong in ([1], 1, "x"):
        Path("wrong.jsonl").write_text(json.dumps(header | {"policy_args": wrong}) + "\n")
        with pytest.raises(BookFormatError, match="line 1: policy_args must be an object"):
            MistakeBook.load("wrong.jsonl")
    with pytest.raises(BookFormatError, match="policy must be that of the configuration, 'counting', got 'own_book"):
        MistakeBook.load("book.jsonl", BookConfig())
    released = MistakeBook()
    released.record("p", [], [A, A, B])
    released.save("book.jsonl")
    assert MistakeBook.load("book.jsonl", RECENT).replay("p", 8) == (A, B), "a policy takes such a book over"


WRONG_POLICIES = """
from codea1_env import BookPolicy, TestCase
class Unfinished(BookPolicy): pass
class Invents(BookPolicy):
    def replayed(self, shelf, limit, problem_id): return (TestCase("g(1)", "1"),)
    def visited(self, shelf, visit): shelf.frequencies.update(dict.fromkeys(visit.failures, 1))
class Below(Invents):
    def visited(self, shelf, visit): shelf.frequencies.update(dict.fromkeys(visit.failures, -1))
class Texts(Invents):
    def visited(self, shelf, visit): shelf.frequencies.update({str(case): 1 for case in visit.failures})
class Twice(Invents):
    def replayed(self, shelf, limit, problem_id): return (*shelf.frequencies, *shelf.frequencies)
    def visited(self, shelf, visit):
        assert len(list(visit.failures)) == len(list(visit.failures)) == 1
        super().visited(shelf, visit)
class Nothing(Invents):
    def replayed(self, shelf, limit, problem_id): shelf.frequencies.clear()
class Pairs(Invents):
    def replayed(self, shelf, limit, problem_id): return [[case.call, case.expected] for case in shelf.frequencies]
class Lost(Invents):
    def visited(self, shelf, visit): shelf.frequencies = None
class Listed(Invents):
    def visited(self, shelf, visit): shelf.qualities = list(visit.failures)
class Counts(Invents):
    def __init__(self, config, **values): super().__init__(config); self.values = values
    def visited(self, shelf, visit):
        self.seen = shelf
        for name, value in self.values.items():
            if name == "visits": shelf.visits = eval(value)
            else: getattr(shelf, name).update(dict.fromkeys(visit.failures, eval(value)))
class Attributes(Invents):
    def __init__(self, config, name, value): super().__init__(config); setattr(self, name, eval(value))
"""


@pytest.mark.parametrize("kept", ["frequencies", "qualities", "visits"])
def test_a_policy_that_keeps_no_number_is_an_error_and_the_book_is_as_it_was(kept: str, outside: Path) -> None:
    (outside / "own_policies.py").write_text(WRONG_POLICIES)
    for value in (*(each for each in NO_NUMBERS if "(" not in each or each.startswith("float")), "-1", "0"):
        values = {"frequencies": "1", "qualities": "1", kept: value}
        book = MistakeBook(BookConfig(policy="own_policies:Counts", policy_args=values))
        if (kept, value) != ("visits", "0"):  # that is a number of visits
            with pytest.raises(ConfigurationError, match=r"\Awhat the book's policy .* keeps must be .*, got .*\Z"):
                book.record("p", [], [A])
        assert len(book) == 0
    config = BookConfig(policy="own_policies:Counts", policy_args={"frequencies": "1"})
    book = MistakeBook(config)
    book.record("p", [], [A])
    config.rule.seen.frequencies[A] = float("nan")  # type: ignore[attr-defined]  # of the class above
    assert book.frequencies("p") == {A: 1}, "what a policy still holds is not the book"


@pytest.mark.parametrize(
    ("name", "values"),
    [("rates", ["1", "None"]), ("whole_frequencies", ["'no'"]),
     ("most_quality", ["float('nan')", "-float('inf')", "0", "'1'", "None"])],
)  # fmt: skip
def test_an_attribute_of_a_policy_that_is_none_is_refused_at_once(name: str, values: list[str], outside: Path) -> None:
    (outside / "own_policies.py").write_text(WRONG_POLICIES)
    for value in values:
        config = BookConfig(policy="own_policies:Attributes", policy_args={"name": name, "value": value})
        with pytest.raises(ConfigurationError, match=rf"\Aown_policies:Attributes.{name} must be .*, got .*\Z"):
            MistakeBook(config)


def test_what_is_no_policy_is_refused(outside: Path) -> None:
    (outside / "own_policies.py").write_text(WRONG_POLICIES)
    with pytest.raises(ConfigurationError, match="policy must name a class that defines replayed, visited"):
        MistakeBook(BookConfig(policy="own_policies:Unfinished"))
    with pytest.raises(ConfigurationError, match="policy must be 'counting' or 'module:Class'"):
        BookConfig(policy="counted")
    for name in ("Invents", "Twice", "Nothing", "Pairs"):
        book = MistakeBook(BookConfig(policy=f"own_policies:{name}"))
        book.record("p", iter(()), iter([A]))
        with pytest.raises(ConfigurationError, match="must be at most 8 of the question's tests, each once, got "):
            book.replay("p", 8)
        assert len(book) == 1, "what is replayed does not change it"
    musts = {"Below": "finite numbers above 0", "Texts": "codea1_env.TestCase objects of two texts"}
    for name, must in (musts | dict.fromkeys(("Lost", "Listed"), "dicts of tests and numbers")).items():
        book = MistakeBook(BookConfig(policy=f"own_policies:{name}"))
        with pytest.raises(ConfigurationError, match=f"policy 'own_policies:{name}' keeps must be {must}"):
            book.record("p", [], [A])
        assert len(book) == 0  # as it was, and it can be saved


def test_classes_and_prompts_are_found_beside_the_configuration_by_a_run_and_resumed(outside: Path) -> None:
    """From another folder; resumed in another process, as a user does."""
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    for name in ("reward", "book"):  # which nobody has imported here
        (outside / f"own_{name}.py").rename(outside / f"beside_{name}.py")
    (outside / "words.yaml").write_text("coder: {system: Words of mine.}\n")
    (outside / "own.yaml").write_text(
        "extends: 0.5b\nprompts: words.yaml\n"
        "reward: {tester_reward: beside_reward:Reward, tester_reward_args: {accusing: -1}}\n"
        "book: {policy: beside_book:Recent, policy_args: {visits: 9}, capacity: 2}\n"
    )
    (outside / "elsewhere").mkdir()
    os.chdir(outside / "elsewhere")
    preset = load_preset(None, Path("../own.yaml"))
    Path("config.yaml").write_text(yaml.safe_dump({"seed": 0, "preset": preset.to_dict()}))
    resumed = (
        "from pathlib import Path; from codea1_env.configuration.arguments import read_configuration\n"
        "preset, _ = read_configuration(Path('config.yaml'))\n"
        "print(type(preset.reward.reward).__module__, type(preset.book.rule).__module__, preset.prompts.coder.system)\n"
        "print(preset.reward.tester_reward_args, preset.book.policy_args)\n"
    )
    how: Any = {"text": True, "env": {"PYTHONPATH": str(EXAMPLES.parent), "PATH": "/usr/bin:/bin"}}
    done = subprocess.run([sys.executable, "-P", "-c", resumed], capture_output=True, **how)
    printed = "beside_reward beside_book Words of mine.\n{'accusing': -1} {'visits': 9}\n"
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_a_module_in_place_of_the_one_beside_the_configuration_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("path", "config"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "of_two_places.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "path"))
    twin = Algorithm(advantage="of_two_places:Estimator")
    with pytest.raises(
        ConfigurationError, match=r"algorithm.advantage must name one module, got .*config/of_two_.*path/"
    ):
        located(twin, tmp_path / "config")
    assert located(twin, tmp_path / "path").path == (str(tmp_path / "path"),)
