"""The parts of a training run's configuration: frozen, self-validating sections, presets by name, overrides from a YAML
file.

`mini` and `smoke` are here; the others are YAML files beside this one; a file of yours can extend any. The text under
each field, in `run_sections.py` and `model_sections.py`, says what it means and where its value comes from.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.class_paths import is_class_path, look_in
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.grpo_section import GrpoPreset, require_packed
from codea1_env.configuration.model_sections import LoraPreset, ModelPreset, PretrainedModel, WarmStartPreset
from codea1_env.configuration.options import Options
from codea1_env.configuration.placement import SEATS, Placement
from codea1_env.configuration.run_sections import (
    EvaluationPreset,
    MemoryPreset,
    ProblemFiles,
    ProblemsPreset,
    RoundPreset,
)
from codea1_env.configuration.sections import Section, changed, check_trackers, choice, switch, text, whole
from codea1_env.errors import ConfigurationError, about
from codea1_env.mistake_book.policies import BookConfig
from codea1_env.players.prompts import DEFAULT, find_prompts, prompts_from
from codea1_env.players.templates import Prompts
from codea1_env.rewards.code_a1 import RewardConfig
from codea1_env.yaml_files import read_yaml

CONFIGS = Path(__file__).parent
KINDS = {"problems": (ProblemsPreset, ProblemFiles), "model": (ModelPreset, PretrainedModel)}
"""Sections that may be of one kind or another."""


def _names_own(reward: RewardConfig, book: BookConfig) -> bool:
    return bool(reward.own) or is_class_path(book.policy)


@dataclass(frozen=True, slots=True)
class Preset(Section):
    """Everything that decides a run except its seed."""

    name: str = text("mini", low=1)
    rounds: int = whole(100, 1, 1_000_000)
    """Rounds of the duel. Paper: 111 (of 256 questions)."""
    budget_tokens: int = whole(0, 0, 10**15)
    """Tokens sampled in training, by all who answer in it, behind which no further round begins; 0: no limit."""
    save_rounds: int = whole(50, 1, 1_000_000)
    """Rounds between checkpoints."""
    patience_s: int = whole(7200, 1, 1_000_000)
    """Seconds, more than a round takes, that a seat waits for the other one under the engine ray; then the run ends."""
    keep_checkpoints: int = whole(3, 1, 1_000_000)
    """Number of checkpoints kept of each seat, from the last rounds that are complete for all seats."""
    keep_duels: int = whole(1, 0, 4096)
    """Questions per round whose games are kept in the run's directory for `codea1 view`; 0: none. Only for runs in
    which suites are written against programs: of two seats, and of self-play."""
    report_to: tuple[str, ...] = ("tensorboard",)
    """Where the metrics go beside metrics.jsonl: any of tensorboard, wandb, trackio, as for TRL (docs/metrics.md)."""
    differences: tuple[str, ...] = ()
    """Where the preset departs from the paper, in words; written into the run's configuration."""
    seats: tuple[str, ...] = SEATS
    """Who learns where both sides do: the coder and its testers, of which there may be several (tester, tester_1, ...).
    Each tester writes `round.suites` suites against every program, and all of them count for the coder."""
    problems: ProblemsPreset | ProblemFiles = field(default_factory=ProblemsPreset)
    round: RoundPreset = field(default_factory=RoundPreset)
    reward: RewardConfig = field(default_factory=lambda: RewardConfig(suite_size=4))
    """Rewards of both seats. Paper: alpha 0.5, K 8, 8 replays."""
    book: BookConfig = field(default_factory=BookConfig)
    """What the Mistake Book keeps and replays. Released code: the defaults."""
    grpo: GrpoPreset = field(default_factory=GrpoPreset)
    """Arguments of both seats' trainers, under TRL's names."""
    algorithm: Algorithm = field(default_factory=Algorithm)
    """How rewards become advantages, and which loss uses them."""
    evaluation: EvaluationPreset = field(default_factory=EvaluationPreset)
    model: Any = field(default_factory=ModelPreset)
    """A `ModelPreset`, built from nothing, or a `PretrainedModel`."""
    prompts: Prompts = field(default_factory=lambda: find_prompts(DEFAULT))
    """The prompts of a pretrained model (docs/your-model.md). A file gives the name of a design, a YAML or JSON file,
    or the templates themselves, as a run records them. A model built from nothing has short prompts of its own."""
    lora: LoraPreset = field(default_factory=LoraPreset)
    warm_start: WarmStartPreset = field(default_factory=WarmStartPreset)
    """The warm start of a model built from nothing; a pretrained one ignores it."""
    memory: MemoryPreset = field(default_factory=MemoryPreset)
    placement: Placement = field(default_factory=Placement)
    """Where each seat lives, under the Ray engine."""
    options: Options = field(default_factory=Options)
    """Choices that the paper does not make, or makes in one way."""
    trainer: str = choice("trl", ("trl", "packed"))
    """The trainer. trl: TRL's trainer, for every placement. packed: the engine of language_models/ for small models,
    with one base for all seats and adapters only (docs/your-model.md)."""
    arenas: int = whole(1, 1, 1024)
    """Processes that score the questions of a round, each with a sandbox of its own; under the engine ray they are on
    the nodes of the cluster. 1: the first process scores, with a sandbox of two. No bit of a run depends on it."""
    threads: int = whole(1, 1, 64)
    """Threads of torch of a seat, under the engine local. A run repeats bit by bit with the same number."""
    stop_at_fence: bool = switch()
    """Whether an answer ends with its first fenced block, in the packed trainer's rounds and evaluations."""
    stop_at_tests: bool = switch()
    """Whether a tester's answer ends with its reward.suite_size-th test, likewise: no more are paid."""

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        check_trackers(self.report_to, "report_to")
        self._check_seats()
        self._check_model()
        if _names_own(self.reward, self.book):
            look_in(self.algorithm.path)
        shape = self.round
        require(shape.attacked <= shape.programs, "attacked", f"be at most programs ({shape.programs})", shape.attacked)
        strategies = {seat: self.placement.of(seat).strategy for seat in SEATS}
        self.options.check(shape.programs, shape.attacked, self.reward, strategies)
        self._check_trainer()
        _ = self.book.rule  # a policy of one's own that cannot be loaded is known before any model is
        for rows in (shape.questions * shape.programs, shape.questions * shape.attacked * shape.suites):
            require(rows % shape.updates == 0, "updates", f"divide {rows} (rows a round)", shape.updates)
        self._check_ranks()
        self._check_problems()
        self._check_answers()

    def _check_seats(self) -> None:
        testers = ["tester", *(f"tester_{number}" for number in range(1, len(self.seats) - 1))]
        must = "be coder, tester, tester_1, ... in order"
        require(list(self.seats) == ["coder", *testers], "seats", must, list(self.seats))
        if len(testers) > 1 and (self.options.opponents != "latest" or self.options.tester_book):
            raise ConfigurationError(
                "options.opponents must be latest and tester_book 0 with several testers, got "
                f"{self.options.opponents!r} and {self.options.tester_book}"
            )
        vllm = self.placement.tester.vllm
        must = "be off or colocate with several testers, which would write their weights into one server"
        require(len(testers) == 1 or vllm != "server", "placement.tester.vllm", must, vllm)

    def _check_model(self) -> None:
        if not isinstance(self.model, PretrainedModel) and self.prompts != find_prompts(DEFAULT):
            raise ConfigurationError(
                "prompts must be left out for a model built from nothing, which has its own, got some"
            )
        for name, kinds in KINDS.items():
            part, names = getattr(self, name), " or ".join(kind.__name__ for kind in kinds)
            require(isinstance(part, kinds), name, f"be a {names}", part)

    def _check_trainer(self) -> None:
        if self.trainer == "packed":
            require_packed(self)
        for name in ("stop_at_fence", "stop_at_tests") if self.trainer == "trl" else ():
            if getattr(self, name):
                raise ConfigurationError(f"{name} must be false with trainer: trl, got true")
        if self.trainer == "trl" and self.algorithm.rollouts != "continuous":
            raise ConfigurationError(
                "algorithm.rollouts must be continuous with trainer: trl, which samples with generate or vLLM "
                f"(placement), got {self.algorithm.rollouts}"
            )
        if self.stop_at_tests and self.reward.fidelity == "paper":
            raise ConfigurationError(
                "stop_at_tests must be false with reward.fidelity: paper, which pays all, got true"
            )
        ranks = [self.placement.of(seat).ranks for seat in SEATS]
        if self.algorithm.resample and max(ranks) > 1:
            raise ConfigurationError(
                f"algorithm.resample must be 0 where a seat has several ranks, which share all prompts evenly, got "
                f"{self.algorithm.resample} and {max(ranks)} ranks"
            )

    def _check_answers(self) -> None:
        is_begun = bool(self.prompts.tester.response) and isinstance(self.model, PretrainedModel)
        must = "be suite where prompts.tester.response begins the answer, since tests are then not where the tokens say"
        require(self.algorithm.credit == "suite" or not is_begun, "algorithm.credit", must, self.algorithm.credit)
        for seat, prompt in (("coder", self.round.coder_prompt_tokens), ("tester", self.round.tester_prompt_tokens)):
            must = f"hold the {seat}'s prompt and response, {prompt} + {self.grpo.tokens(seat)} tokens"
            fits = prompt + self.grpo.tokens(seat) <= self.model.context
            require(fits, "model.context", must, self.model.context)

    def _check_ranks(self) -> None:
        """Every rank samples and learns from an equal share of the rows."""
        shape = self.round
        programs = shape.questions * shape.programs
        # The tester's ranks also share the programs that they attack, group by group.
        put = shape.questions * self.options.put_to_tester(shape.programs, shape.attacked)
        rows = {"coder": (programs,), "tester": (put, shape.questions * shape.attacked * shape.suites)}
        for seat in SEATS:
            placed = self.placement.of(seat)
            for count in rows[seat]:
                if count % (placed.ranks * shape.updates):
                    raise ConfigurationError(
                        f"placement.{seat}.ranks * updates must divide {count} (rows a round), "
                        f"got {placed.ranks} * {shape.updates}"
                    )
            learnt, rows_a_pass = rows[seat][-1] // (placed.ranks * shape.updates), self.memory.rows_per_device(seat)
            must = f"divide the {learnt} rows that a rank learns from in an update"
            divides = not rows_a_pass or learnt % rows_a_pass == 0
            require(divides, f"memory.{seat}_rows_per_device", must, rows_a_pass)
            if placed.strategy != "ddp" and self.evaluation.every_rounds:
                raise ConfigurationError(
                    f"evaluation.every_rounds must be 0 where a seat's model is sharded ({seat}: {placed.strategy}), "
                    f"got {self.evaluation.every_rounds}; the evaluations before and after the run stay"
                )

    def _check_problems(self) -> None:
        if not isinstance(self.problems, ProblemsPreset):
            return  # how many a file holds is known when it is read
        train, least = self.problems.train, self.round.questions
        require(train >= least, "problems.train", f"be at least the questions a round ({least})", train)
        measured, most = self.evaluation.problems, self.problems.held_out
        require(measured <= most, "evaluation.problems", f"be at most problems.held_out ({most})", measured)

    def seats_of(self, trains: Sequence[str]) -> tuple[str, ...]:
        """The seats of a recipe that trains these: where both sides learn, all that there are."""
        return self.seats if tuple(trains) == SEATS else tuple(trains)

    def to_dict(self) -> dict[str, Any]:
        """The preset as plain data, as in a run's config.yaml; `preset_from_dict` gives back an equal one."""
        sections = dataclasses.asdict(self) | {"grpo": self.grpo.values}
        if not isinstance(self.model, PretrainedModel):
            del sections["prompts"]
        plain: dict[str, Any] = json.loads(json.dumps(sections))
        return plain


MINI = Preset(
    differences=(
        "models: 0.34 million weights, one warm start for both; paper: instruct models, 1.5 to 7 thousand million",
        "questions a round 8, training problems 200 (revisited); paper: 256 of 9,688",
        "suites per program M = 4, tests per suite K = 4; paper: 8 and 8",
        "one optimizer step a round; paper: two",
        "learning rates 5e-4, constant after the warm-up; paper: 1e-6, cosine",
        "responses of at most 72 and 100 tokens; paper: 4096",
    )
)

SMOKE = Preset(
    name="smoke",
    rounds=2,
    save_rounds=1,
    differences=("random models of a few thousand weights: nothing is learnt, everything is run",),
    problems=ProblemsPreset(train=4, held_out=3),
    round=RoundPreset(questions=2, programs=2, suites=2),
    grpo=GrpoPreset().changed({"warmup_steps": 0, "max_completion_length": 24}),
    evaluation=EvaluationPreset(every_rounds=1, problems=2, hidden_rounds=1, samples=2),
    model=ModelPreset(hidden=32, layers=1, heads=1, feed_forward=32),
    warm_start=WarmStartPreset(steps=0, problems=50),
)

GENERATIONS = "num_generations"
PRESETS: Mapping[str, Preset] = {"mini": MINI, "smoke": SMOKE}
"""Those that need no file; `load_preset` knows all."""


def preset_names() -> list[str]:
    """Every preset that `load_preset` knows by name: small ones first."""
    return [*PRESETS, *sorted(file.stem for file in CONFIGS.glob("*.yaml"))]


def preset_from_dict(
    overrides: Mapping[str, Any], base: Preset, where: str = "the configuration", folders: Sequence[str] = ()
) -> Preset:
    """`base` with the fields that `overrides` names replaced, section by section. `folders`: in which files of one's
    own are looked for before the current one.

    Raises ConfigurationError for an unknown key or a value outside its range, naming `where`, the key, must and got.
    """
    require(isinstance(overrides, Mapping), where, "be a mapping of fields to values", overrides)
    overrides = _with_reading(_with_generations(overrides, where), where)
    changes: dict[str, Any] = {}
    names = {each.name for each in dataclasses.fields(base)}
    for key, value in overrides.items():
        require(key in names, f"{where}: a key", f"be one of {sorted(names)}", key)
        current = getattr(base, key)
        if key in ("differences", "report_to", "seats"):
            if not isinstance(value, list | tuple) or not all(isinstance(line, str) for line in value):
                raise ConfigurationError(f"{where}: {key} must be a list of texts, got {value!r}")
            changes[key] = tuple(value)
        elif isinstance(current, Prompts):
            is_name = isinstance(value, str)
            changes[key] = find_prompts(value, folders) if is_name else prompts_from(value, f"in {where}")
        elif isinstance(current, GrpoPreset):
            changes[key] = current.changed(value, f"{where}: {key}")
        elif dataclasses.is_dataclass(current):
            changes[key] = changed(current, value, KINDS.get(key, (type(current),)), f"{where}: {key}")
        else:
            changes[key] = value
    reward, book, algorithm = (changes.get(name, getattr(base, name)) for name in ("reward", "book", "algorithm"))
    if _names_own(reward, book):
        changes["algorithm"] = dataclasses.replace(algorithm, path=tuple(dict.fromkeys([*algorithm.path, *folders])))
    with about(where):
        return dataclasses.replace(base, **changes)


def _with_reading(overrides: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """`reading`, how answers are read, as the choices of the rewards that say so."""
    reading, reward = overrides.get("reading", {}), overrides.get("reward", {})
    if not isinstance(reading, Mapping) or set(reading) - {"trim"}:
        raise ConfigurationError(f"{where}: reading must be a mapping of trim to true or false, got {reading!r}")
    if not isinstance(reward, Mapping):
        return overrides
    for name, value in reading.items():
        if reward.get(name, value) != value:
            raise ConfigurationError(
                f"{where}: reading.{name} must be reward.{name} where both are given, got {value!r} and "
                f"{reward[name]!r}"
            )
    kept = {name: value for name, value in overrides.items() if name != "reading"}
    return {**kept, "reward": {**reward, **reading}} if reading else kept


def _with_generations(overrides: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """TRL's `num_generations` as the round's sizes: N of the coder's groups, M of the tester's."""
    grpo, sizes = overrides.get("grpo"), overrides.get("round", {})
    if not isinstance(grpo, Mapping) or not isinstance(sizes, Mapping):
        return overrides
    kept = {name: value for name, value in grpo.items() if name != GENERATIONS}
    for seat, size in (("coder", "programs"), ("tester", "suites")):
        own = grpo.get(seat)
        given = grpo.get(GENERATIONS)
        if isinstance(own, Mapping) and GENERATIONS in own:
            given = own[GENERATIONS]
            kept[seat] = {name: value for name, value in own.items() if name != GENERATIONS}
        if given is not None and sizes.get(size, given) != given:
            raise ConfigurationError(
                f"{where}: grpo.{GENERATIONS} of the {seat} must be round.{size} where both are given, got {given!r} "
                f"and {sizes[size]!r}"
            )
        sizes = sizes if given is None else {**sizes, size: given}
    return {**overrides, "grpo": kept, **({"round": sizes} if sizes else {})}


def load_preset(name: str | None, config: Path | None = None) -> Preset:
    """The preset of that name (`mini` for None), with the overrides of a YAML file. Raises ConfigurationError.

    `extends: NAME` or `extends: FILE.yaml` in the file says what it overrides; a name given beside it must agree. What
    either file names of one's own is looked for in the folder of `config`, then in the current one.
    """
    if config is None:
        return _named("mini" if name is None else name)
    return _of_file(config, (Path(os.path.realpath(config)),), (os.path.realpath(config.parent), str(Path.cwd())), name)


def _named(name: str) -> Preset:
    if name in PRESETS:
        return PRESETS[name]
    if name not in preset_names():
        near = difflib.get_close_matches(name, preset_names(), 1, 0.7)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ConfigurationError(f"preset must be one of {', '.join(preset_names())}, got {name}{meant}")
    return _of_file(CONFIGS / f"{name}.yaml", (), ())


def _of_file(file: Path, seen: tuple[Path, ...], folders: tuple[str, ...], name: str | None = None) -> Preset:
    """What a file makes of the preset, or of the file beside it, that it extends; of `name` if it does not say.
    `folders`: as for `preset_from_dict`."""
    content = read_yaml(file, "config")
    require(content is None or isinstance(content, Mapping), str(file), "be a mapping of fields to values", content)
    overrides = dict(content or {})
    extended = overrides.pop("extends", None)
    if extended is not None and name not in (None, extended):
        raise ConfigurationError(f"preset must be left out or be what {file} extends ({extended}), got {name!r}")
    source = extended or name or "mini"
    if isinstance(source, str) and source in preset_names():
        return preset_from_dict(overrides, _named(source), str(file), folders)
    if not isinstance(source, str) or not source.endswith((".yaml", ".yml")):
        raise ConfigurationError(f"{file}: extends must be one of {preset_names()} or a YAML file, got {source!r}")
    other = Path(os.path.realpath(file.parent / source))
    if other in seen:
        raise ConfigurationError(f"{file}: extends must come to an end, got {other} again")
    return preset_from_dict(overrides, _of_file(other, (*seen, other), folders), str(file), folders)
