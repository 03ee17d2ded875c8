"""The one command line of every trainer: read, checked and explained before anything heavy is imported.

Does not build or create anything. Wrong arguments end the program with status 2 and a line that says must and got.
"""

from __future__ import annotations

import argparse
import dataclasses
import errno
import fnmatch
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.checks import require
from codea1_env.class_paths import as_own, own_exits
from codea1_env.configuration.algorithm import located
from codea1_env.configuration.batches import CODE_A1, roles_of
from codea1_env.configuration.flags import parser_of
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.placement import SEATS
from codea1_env.configuration.plan import plan_of
from codea1_env.configuration.presets import PRESETS, Preset, load_preset, preset_from_dict
from codea1_env.configuration.problem_sets import checked_files, require_files
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.configuration.sections import check_trackers
from codea1_env.errors import Codea1Error, ConfigurationError, FormatError, OwnCodeFailed, told
from codea1_env.extras import MissingExtra, extra
from codea1_env.language_models.directories import (
    is_place,
    positions_of,
    require_chat_model,
    require_gguf_reader,
    require_model,
)
from codea1_env.records.addresses import CONFIG_FILE, SUMMARY, fetched, holds, require_new, working_directory
from codea1_env.starting import CLOSED, INTERRUPTED, interrupts_as_usual, lost_output
from codea1_env.whole_files import LOCK
from codea1_env.yaml_files import read_yaml

DEFAULT_PRESET = "mini"
ENGINES = ("local", "ray")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What a system says where nothing more can be written."""
FULL_WORDS = ("No space left on device", "File too large", "PytorchStreamWriter failed", "unexpected pos", "iostream")
"""The same from safetensors and torch, whose errors have no number."""


@dataclass(frozen=True, slots=True)
class RecipeArguments:
    """What the user asked for, checked."""

    preset: Preset
    """The preset with every override applied."""
    output: Path
    """Directory of the run: new or empty, unless it is resumed."""
    seed: int
    resume: bool
    """Whether to go on with the run in `output`."""
    engine: str = "local"
    """The engine: local or ray."""
    ray_address: str | None = None
    """Address of a running Ray cluster, for the engine ray; None: the run starts one of its own."""
    tester: Path | None = None
    """For recipes with a tester that does not learn: its model, in Hugging Face format. None: the base."""
    recipe: str = CODE_A1
    """The recipe's name, which a run records: another recipe would not go on with it but begin anew in its place."""
    address: str | None = None
    """Where the run is copied to, for fsspec; None: nowhere."""


def parse_arguments(
    description: str,
    argv: Sequence[str] | None = None,
    recipe: str = CODE_A1,
    *,
    like: str = "",
    takes_tester: bool = False,
) -> RecipeArguments:
    """Read the command line. `recipe`: the recipe's name, e.g. `golden`. `like`: for a recipe of one's own, the name of
    one that has the same roles. Raises ConfigurationError for a name that is not known.

    `takes_tester`: the recipe has a tester that does not learn, and with it the argument `--tester`.
    """
    recipe = f"{recipe}:{like}" if like else recipe
    roles_of(recipe)
    parser = parser_of(description, takes_tester=takes_tester)
    given = parser.parse_args(argv)
    address = next((each for each in (given.output, given.resume) if isinstance(each, str)), None)
    try:
        if given.dry_run:
            preset = _planned(given, recipe)
            print(plan_of(preset, recipe))
            if checked := checked_files(preset, recipe):
                print(f"\n{checked}")
            elif isinstance(preset.problems, ProblemFiles):
                print("the problems were not checked, because one of their files is missing", file=sys.stderr)
            parser.exit(0)
        arguments = _resumed(given, recipe) if given.resume else _fresh(given, recipe)
        if arguments.resume and _is_finished(arguments) and holds(address, arguments.output / SUMMARY):
            told = f"{arguments.output} is finished: all {arguments.preset.rounds} rounds are done and measured"
            parser.exit(0, f"{parser.prog}: {told}; to train on, give more --rounds\n")
        if arguments.preset.trainer == "packed":
            os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is loaded: threads that wait do not spin
        return dataclasses.replace(arguments, recipe=recipe, address=address)
    except (ConfigurationError, FormatError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


def exit_status(main: Callable[[], int]) -> int:
    """Run a recipe and return its exit code; 130 if Ctrl-C or SIGTERM stops it (within the rounds, behind a
    checkpoint).

    An error of ours is one line, with the status 2 if it is about what was given and 1 otherwise; an unforeseen error
    keeps its traceback, of which code of one's own is told its part.
    """
    try:
        interrupts_as_usual()
        with own_exits():
            status = main()
        return _unwritten() or status
    except SystemExit:  # --help, --dry-run
        if status := _unwritten():
            return status
        raise
    except (Codea1Error, MissingExtra) as error:
        _tell(error)
        return 2 if isinstance(error, ConfigurationError | FormatError) else 1
    except Exception as error:
        if isinstance(error, OSError) and (status := _unwritten()):
            return status
        if isinstance(error, BrokenPipeError):
            return CLOSED
        if getattr(error, "errno", None) in FULL or any(words in str(error) for words in FULL_WORDS):
            said = f"a run must have room for its files, got {' '.join(str(error).split()):.300}; "
            _tell(f"{said}make room and --resume it, or name another --output")
        elif isinstance(own := as_own(error), OwnCodeFailed):
            _tell(own)
        elif isinstance(error, OSError) and error.filename is not None:
            _tell(told(error))
        else:
            raise
        return 1
    except KeyboardInterrupt:
        _tell("interrupted; what was saved before can be resumed")
        return INTERRUPTED


def _unwritten() -> int:
    """0, or the exit code where standard output does not take what was printed; says why if somebody is there."""
    lost = lost_output()
    if lost is None or isinstance(lost, BrokenPipeError):
        return CLOSED if lost else 0
    _tell(str(lost))
    return 1


def _tell(said: object) -> None:
    if isinstance(said, OwnCodeFailed):
        print(said.args[1], end="", file=sys.stderr)  # whoever wrote that code needs its traceback
    print(f"{Path(sys.argv[0]).name}: {said}", file=sys.stderr)


def _asked(given: argparse.Namespace, recipe: str) -> Preset:
    """What the arguments make of a preset. A module of one's own that is not there is refused."""
    preset = _with_rounds(load_preset(given.preset, given.config), given)
    _check_options(preset, recipe)
    preset = _with_files(preset, given)
    folders = [given.config.parent] if given.config else []
    return dataclasses.replace(preset, algorithm=located(preset.algorithm, *folders, Path.cwd()))


def _fresh(given: argparse.Namespace, recipe: str) -> RecipeArguments:
    preset = _asked(given, recipe)
    require_files(preset)
    _check_installed(preset)
    engine = _engine(given)
    _check_engine(engine, given.ray_address, preset)
    seed = _seed(given)
    output = _checked_output(given.output or _free_directory(Path("runs"), f"{_kind(recipe, preset)}-seed{seed}"))
    _check_writable(output)
    tester = None if given.tester is None else _model_of(given.tester, preset)
    return RecipeArguments(preset, output, seed, False, engine, given.ray_address, tester)


def _planned(given: argparse.Namespace, recipe: str) -> Preset:
    """What would run, wherever it would: a plan may be of another machine, and of files that are not there yet."""
    if given.resume:
        preset, _ = _resumed_preset(given, recipe)
    else:
        preset = _asked(given, recipe)
        if given.tester is not None and given.tester.exists():
            _model_of(given.tester, preset)
        _seed(given)
        if given.output is not None:
            _checked_output(given.output)
    _check_engine_name(_engine(given), given.ray_address)
    return preset


def _check_options(preset: Preset, recipe: str) -> None:
    """Raise ConfigurationError for what is about two sides that learn, in a recipe where one does."""
    learns = roles_of(recipe).learns
    if learns == SEATS:
        return
    must = f"be left out in a recipe in which not both of them learn ({recipe})"
    require(preset.seats == SEATS, "seats", must, list(preset.seats))
    if "player" in learns:
        return
    for name, usual in (("schedule", "simultaneous"), ("opponents", "latest"), ("tester_book", 0)):
        if (got := getattr(preset.options, name)) != usual:
            raise ConfigurationError(
                f"options.{name} must be {usual} in a recipe in which not both roles learn ({recipe}), got {got}"
            )


def _engine(given: argparse.Namespace) -> str:
    """The one that is named; of a run that goes on, otherwise its own."""
    own = read_record(given.resume / CONFIG_FILE).get("engine", "local") if given.resume else "local"
    return str(own if given.engine is None else given.engine)


def _seed(given: argparse.Namespace) -> int:
    return _whole("--seed", "0" if given.seed is None else given.seed, 0, 2**31 - 1)


def _check_writable(output: Path) -> None:
    """Before a base model is built, which takes minutes."""
    there = next(path for path in (output.absolute(), *output.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK):
        raise ConfigurationError(f"--output must be in a folder that can be written, got {output}; name another one")


def found_in(directory: Path) -> list[str]:
    """What is in a run's directory, but for what a start leaves that was killed before it had written anything."""
    names = sorted(path.name for path in directory.iterdir())
    return [name for name in names if name != LOCK and not fnmatch.fnmatch(name, ".*.????????.tmp")]


def _checked_output(output: Path | str) -> Path:
    if isinstance(output, str):
        require_new(output)
        output = working_directory(output)
    try:
        str(output).encode()  # TensorBoard's files take no other names
    except UnicodeEncodeError:
        raise ConfigurationError(f"--output must be a name in UTF-8, got {str(output)!a}; name another one") from None
    if os.path.exists(output) and (not output.is_dir() or found_in(output)):
        raise ConfigurationError(f"--output must be a new or empty directory, got {output}; to go on with it: --resume")
    return output


def _resumed(given: argparse.Namespace, recipe: str) -> RecipeArguments:
    preset, seed = _resumed_preset(given, recipe)
    _check_installed(preset)
    record = read_record(given.resume / CONFIG_FILE)
    engine = _engine(given)
    _check_engine(engine, given.ray_address, preset)
    tester = record.get("tester")
    model = None if tester is None else _model_of(Path(str(tester)), preset)
    return RecipeArguments(preset, given.resume, seed, True, engine, given.ray_address, model)


def _resumed_preset(given: argparse.Namespace, recipe: str) -> tuple[Preset, int]:
    """The preset of the run that goes on, with what may be changed of it, and its seed."""
    file = _resumed_file(given)
    preset, seed = read_configuration(file)
    known = read_record(file).get("recipe", recipe)  # older runs name none
    if known != recipe:
        raise ConfigurationError(
            f"--resume must be the directory of a run of this recipe, {recipe}, got {file.parent}, a run of {known}; "
            "resume it with the script of that recipe"
        )
    preset = _with_rounds(preset, given)
    located(preset.algorithm)
    return preset, seed


def _is_finished(arguments: RecipeArguments) -> bool:
    """Whether the run has measured what so many rounds have trained: its summary is written last."""
    file = arguments.output / SUMMARY
    try:
        summary = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError):  # of another program: the run writes it anew
        return False
    return isinstance(summary, dict) and summary.get("rounds") == arguments.preset.rounds


def _resumed_file(given: argparse.Namespace) -> Path:
    for name in ("preset", "config", "output", "seed", "tester", "model", "problems"):
        if getattr(given, name) is not None:
            raise ConfigurationError(f"--resume must come without --{name} (the run's own counts), got both")
    if isinstance(given.resume, str):
        given.resume = fetched(given.resume)
    file: Path = given.resume / CONFIG_FILE
    if not file.is_file():
        raise ConfigurationError(
            f"--resume must be the directory of a run, got {given.resume} (no {CONFIG_FILE} in it)"
        )
    return file


def read_configuration(file: Path) -> tuple[Preset, int]:
    """The preset and the seed of a run's config.yaml. Raises ConfigurationError."""
    record = read_record(file)
    name = record["preset"].get("name")
    base = PRESETS.get(str(name), PRESETS["mini"])
    return preset_from_dict(record["preset"], base, str(file)), _whole(f"{file}: seed", record["seed"], 0, 2**31 - 1)


def read_record(file: Path) -> dict[str, Any]:
    """All of a run's config.yaml, which may have been edited. Raises ConfigurationError where it has another form."""
    record = read_yaml(file, "the run's configuration")
    if not isinstance(record, dict) or not isinstance(record.get("preset"), dict) or "seed" not in record:
        raise ConfigurationError(f"{file} must be a mapping with `preset` and `seed`, got {record!r:.200}")
    starts = record.get("starts", [])
    forms = {
        "starts": ("a list of mappings", isinstance(starts, list) and all(map(_is_start, starts))),
        "data": ("a mapping", isinstance(record.get("data", {}), dict)),
        "base": ("a text", isinstance(record.get("base", ""), str)),
        "tester_weights": ("a text", isinstance(record.get("tester_weights", ""), str)),
    }
    for name, (must, is_so) in forms.items():
        if not is_so:
            raise ConfigurationError(f"{file}: {name} must be {must}, as the run wrote it, got {record[name]!r:.200}")
    return record


def _is_start(start: object) -> bool:
    names = ("versions", "processor", "own_code")
    if not isinstance(start, dict) or not all(isinstance(start.get(name, {}), dict) for name in names):
        return False
    return all(isinstance(own, dict) for own in start.get("own_code", {}).values())


def _model_of(directory: Path, preset: Preset) -> Path:
    """The tester's model in a run's directory, or the model that the directory is."""
    for model in (directory / "tester" / "final", directory):
        if (model / "config.json").is_file():
            (require_model if preset.trainer == "packed" else require_chat_model)(model, "--tester")
            return model.resolve()
        if (model / "base.json").is_file():
            return model.resolve()
    raise ConfigurationError(
        f"--tester must be a run's directory with tester/final, or a model's with config.json, got {directory}"
    )


def _with_files(preset: Preset, given: argparse.Namespace) -> Preset:
    """With the model and the problems that the command line names."""
    if given.model is not None:
        if not isinstance(preset.model, PretrainedModel):
            raise ConfigurationError(
                f"--model must come with a preset of a pretrained model, such as 0.5b, got {preset.name}"
            )
        model = dataclasses.replace(preset.model, pretrained=given.model, revision="")
        preset = dataclasses.replace(preset, model=model)
    if given.problems is not None:
        if not isinstance(preset.problems, ProblemFiles):
            raise ConfigurationError(
                f"--problems must come with a preset that reads files, such as 0.5b, got {preset.name}"
            )
        preset = dataclasses.replace(preset, problems=dataclasses.replace(preset.problems, file=given.problems))
    _check_model(preset, is_plan=given.dry_run)
    return preset


def _check_model(preset: Preset, *, is_plan: bool) -> None:
    """What can be told of a model from its files, before anything is loaded. A repository's come later."""
    if not isinstance(preset.model, PretrainedModel):
        return
    name = preset.model.pretrained
    if not is_place(name):
        return
    if preset.trainer == "packed":
        require_model(Path(name), "--model", is_plan=is_plan)
    elif Path(name).is_file():
        raise ConfigurationError(f"--model must be a directory with trainer: trl, got {name}")
    else:
        require_chat_model(Path(name), "--model", is_plan=is_plan)
    _check_positions(preset, Path(name))


def _check_positions(preset: Preset, model: Path) -> None:
    """Whether the longest prompts with their responses have a place in the model."""
    positions, entry = positions_of(model)
    for seat, prompt in (("coder", preset.round.coder_prompt_tokens), ("tester", preset.round.tester_prompt_tokens)):
        if prompt + preset.grpo.tokens(seat) > positions:
            raise ConfigurationError(
                f"--model must have {entry} for the {seat}'s prompt and response, {prompt} + "
                f"{preset.grpo.tokens(seat)} tokens, got {positions} in {model}"
            )


def _with_rounds(preset: Preset, given: argparse.Namespace) -> Preset:
    changes: dict[str, Any] = {}
    ranges = dict.fromkeys(("rounds", "save_rounds", "keep_checkpoints"), (1, 1000000))
    for name, (low, high) in (ranges | {"keep_duels": (0, 4096)}).items():
        value = getattr(given, name)
        if value is not None:
            changes[name] = _whole("--" + name.replace("_", "-"), value, low, high)
    if given.report_to is not None:
        names = () if given.report_to == ["none"] else tuple(given.report_to)
        check_trackers(names, "--report-to")
        changes["report_to"] = names
    return dataclasses.replace(preset, **changes)


def _check_installed(preset: Preset) -> None:
    """What is missing is said before anything slow is loaded, and the whole extra before a part of it."""
    with extra("train", "training needs"):
        if importlib.util.find_spec("torch") is None:
            raise ImportError("no package torch")
    if isinstance(preset.model, PretrainedModel) and preset.model.pretrained.endswith(".gguf"):
        require_gguf_reader(Path(preset.model.pretrained))
    for name in preset.report_to:
        if importlib.util.find_spec(name) is None:
            raise ConfigurationError(f"report_to: {name} must be installed, got none: pip install {name}")


def _check_engine_name(engine: str, ray_address: str | None) -> None:
    if engine not in ENGINES:
        raise ConfigurationError(f"--engine must be one of {', '.join(ENGINES)}, got {engine}")
    if ray_address and engine != "ray":
        raise ConfigurationError(f"--ray-address must come with --engine ray, got --engine {engine}")
    if ray_address and "://" in ray_address:
        raise ConfigurationError(
            f"--ray-address must be HOST:PORT or auto, of a cluster that this machine is part of, got {ray_address}"
        )


def _check_engine(engine: str, ray_address: str | None, preset: Preset) -> None:
    _check_engine_name(engine, ray_address)
    if engine == "ray":
        if importlib.util.find_spec("ray") is None:
            raise ConfigurationError("--engine ray needs the extra `ray`, got none: pip install '.[ray]'")
        return
    for seat in SEATS:
        if not preset.placement.of(seat).is_one_process_on_cpu:
            raise ConfigurationError(
                f"placement.{seat} must be one rank on the CPU with --engine local, "
                f"got {preset.placement.of(seat)}; for this, --engine ray"
            )


def _whole(name: str, value: object, low: int, high: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise ConfigurationError(f"{name} must be a whole number in [{low}, {high}], got {value}")
    return number


def _kind(recipe: str, preset: Preset) -> str:
    """What a run is called that nobody named."""
    if recipe == CODE_A1:
        return preset.name
    recipe = recipe.partition(":")[0]
    return recipe if preset.name == DEFAULT_PRESET else f"{recipe}-{preset.name}"


def _free_directory(parent: Path, name: str) -> Path:
    candidates = (parent / (name if count == 1 else f"{name}-{count}") for count in range(1, 1_000_000))
    return next(path for path in candidates if not path.exists())
