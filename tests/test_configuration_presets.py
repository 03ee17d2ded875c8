"""Presets and the command line: everything is checked before anything heavy is loaded, and errors say must and got."""

import dataclasses
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_lines import ended
from gguf_files import write_header

from codea1_env import ConfigurationError, RewardConfig, bundled_problems, write_problems
from codea1_env.configuration.algorithm import Algorithm
from codea1_env.configuration.arguments import parse_arguments, read_configuration
from codea1_env.configuration.model_sections import PretrainedModel
from codea1_env.configuration.options import ACCESSES, OPPONENTS, SCHEDULES, SELECTIONS, Options
from codea1_env.configuration.placement import Placement, SeatPlacement, trainer_arguments
from codea1_env.configuration.presets import CONFIGS, MINI, SMOKE, load_preset, preset_from_dict, preset_names
from codea1_env.configuration.run_sections import ProblemFiles
from codea1_env.mistake_book.policies import BookConfig

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_plain_data_whatever_it_is_read_over(name: str) -> None:
    preset = load_preset(name)
    is_the_papers = (preset.options, preset.algorithm) == (Options(), Algorithm())
    assert is_the_papers == (name not in ("skill", "0.5b-fineprint"))
    assert (preset.trainer == "packed", preset.stop_at_fence) == (name.startswith("0.5b"),) * 2
    for base in (MINI, load_preset("7b")):
        assert preset_from_dict(preset.to_dict(), base) == preset


@pytest.mark.parametrize(("name", "size"), [("1.5b", "1.5B"), ("3b", "3B"), ("7b", "7B")])
def test_a_preset_of_the_paper_has_the_papers_values(name: str, size: str) -> None:
    """The paper's section on training; what it does not give is ours and may change."""
    preset = load_preset(name)
    assert (preset.name, preset.model.pretrained) == (name, f"Qwen/Qwen2.5-Coder-{size}-Instruct")
    shape = preset.round
    assert (shape.questions, shape.programs, shape.suites, shape.attacked, shape.updates) == (256, 8, 8, 1, 2)
    assert (shape.coder_prompt_tokens, shape.tester_prompt_tokens) == (4096, 8192)
    assert preset.grpo.of("tester") == preset.grpo.of("coder")
    schedule = {"lr_scheduler_type": "cosine_with_min_lr", "lr_scheduler_kwargs": {"min_lr_rate": 0.0}}
    optimizer = {"learning_rate": 1e-6, "weight_decay": 0.1, "max_grad_norm": 1.0}
    warmup = {"warmup_steps": 10 * shape.updates}  # rounds: the released schedule steps once a round
    loss = {"beta": 0.001, "use_bias_correction_kl": False, "epsilon": 0.2, "epsilon_high": 0.28, "delta": 10.0}
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_completion_length": 4096}
    masked = {"mask_truncated_completions": False, "vllm_importance_sampling_mode": "token_truncate"}
    corrected = {"vllm_importance_sampling_clip_min": 1.0, "vllm_importance_sampling_clip_max": 1.000001}  # nothing is
    assert preset.grpo.of("coder") == schedule | optimizer | warmup | loss | sampling | masked | corrected
    assert (preset.rounds, preset.lora.rank) == (111, 0)
    assert preset.reward == RewardConfig(alpha=0.5, suite_size=8, replay_limit=8, fidelity="strict")
    measured = preset.evaluation
    assert (measured.samples, measured.temperature, measured.top_p, measured.tokens) == (32, 0.7, 0.95, 2048)
    assert [preset.placement.of(seat).ranks for seat in ("coder", "tester")] == [4, 4]


def test_the_write_ups_preset_has_the_numbers_of_its_training_loop_and_mini_says_how_it_differs() -> None:
    preset = load_preset("skill")
    assert (preset.round.programs, preset.round.suites, preset.round.attacked) == (4, 4, 1)
    learning = [(preset.grpo.of(seat)["learning_rate"], preset.grpo.tokens(seat)) for seat in ("coder", "tester")]
    assert learning == [(1e-5, 1024), (1e-5, 512)]
    assert preset.book == BookConfig(capacity=2000, retire=False, admission=0.5, replay="sampled")
    assert (preset.reward.tester_reward, preset.options.selection) == ("skill", "first")
    assert MINI.reward == RewardConfig(suite_size=MINI.reward.suite_size), "the paper's rewards, but K"
    assert len(MINI.differences) >= 4
    assert any("K = 4" in line for line in MINI.differences)


@pytest.mark.parametrize("name", ["1.5b", "3b", "7b", "skill"])
def test_every_value_of_a_preset_file_has_its_source_beside_it(name: str) -> None:
    lines = (CONFIGS / f"{name}.yaml").read_text().splitlines()
    values = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "- "))]
    for line in values:
        in_flow = line.startswith(("name:", "extends:", "  coder: {", "  tester: {"))
        if not in_flow and not line.split("#")[0].rstrip().endswith(":"):
            assert any(f"# {source}" in line for source in ("paper", "ours", "released code", "write-up")), line


ALL = "selection: all must come with"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("round: {suites: 1}", r"round: suites must be a whole number in \[2, 64\], got 1"),
        ("grpo: {tester: {learning_rate: .nan}}", r"grpo: tester: learning_rate must be a number .* nan"),
        ("grpo: {kl_coef: 0.1}", "grpo: kl_coef must be given as beta, got it here"),
        ("grpo: {clip_fraction: 0.1}", "got 'clip_fraction'; TRL's documentation lists them"),
        ("grpo: {learning_rat: 1.0}", r"grpo: a key must be .*, got 'learning_rat'; did you mean learning_rate"),
        ("{grpo: {num_generations: 8}, round: {suites: 4}}", "tester must be round.suites where .*, got 8 and 4"),
        ("grpo: {num_generations: 1}", "round: programs must be"),
        ("prompts: begun", "prompts must be left out for a model built from nothing"),
        ("grpo: {scale_rewards: none}", r"grpo: scale_rewards must be given as algorithm.scale, got it here"),
        ("grpo: {coder: 1}", r"grpo: coder must be a mapping of arguments, got 1"),
        ("grpo: {adam_beta1: 1.0}", r"adam_beta1 must be a number in \[0, 0.9999999999999999\], got 1.0$"),
        ("grpo: {adam_beta2: 1e-6}", r"adam_beta2 must be .* \(YAML reads 1e-6 as text: write 1.0e-6\), got '1e-6'$"),
        ("grpo: {tester: {adam_epsilon: 0}}", r"tester: adam_epsilon must be a number in \[1e-12, 1.0\], got 0$"),
        ("grpo: {use_bias_correction_kl: abc}", "use_bias_correction_kl must be true or false, got 'abc'$"),
        ("grpo: {lr_scheduler_type: reduce_lr_on_plateau}", "type must be one of linear, .*, got 'reduce_lr_on_plat"),
        ("grpo: {lr_scheduler_type: null}", "lr_scheduler_type must be one of linear, cosine, .*, got None$"),
        ("grpo: {lr_scheduler_kwargs: [1]}", r"kwargs must be a mapping .* to finite numbers, got \[1\]$"),
        ("grpo: {lr_scheduler_kwargs: {min_lr_rate: .nan}}", "kwargs must be a mapping .* to finite numbers, got {"),
        ("learning: {clip_high: 0.3}", r"a key must be one of \[.*, 'grpo', .*\], got 'learning'"),
        ("reward: {alpha: 1.3}", r"reward: alpha must be in \[0, 1\], got 1.3"),
        ("model: {hidden: 96, heads: 4}", r"hidden / heads must be a whole number of at least 32, got 96 / 4"),
        ("model: {mimetic: true, layers: 1}", "layers and key_value_heads must be at least 2 with mimetic, got 1"),
        ("problems: {family: lists}", "family must be one of miniature, bands, shift, fineprint, .*words, got 'lists'"),
        ("model: {key_value_heads: 2}", r"key_value_heads must divide heads \(3\), got 2"),
        ("round: {attacked: 9}", r"attacked must be at most programs \(8\), got 9"),
        ("round: {updates: 5}", r"updates must divide 64 .* got 5"),
        ("problems: {train: 4}", r"problems.train must be at least the questions a round \(8\), got 4"),
        ("problems: {held_out: 10}", r"evaluation.problems must be at most problems.held_out \(10\), got 40"),
        ("memory: {coder_rows_per_device: 3}", r"coder_rows_per_device must divide the 64 rows .*, got 3"),
        ("round: {tester_prompt_tokens: 500}", r"model.context must hold the tester's .*, 500 \+ 100 .* got 512"),
        ("model: {pretrained: ' '}", r"model: pretrained must be a directory or a name on the hub, got ' '"),
        ("model: {pretrained: x, hidden: 64}", r"model: a key must be one of .*'pretrained'.*, got 'hidden'"),
        ("model: {revision: main}", r"model: a key must be one of .*'hidden'.*, got 'revision'"),
        ("problems: {file: a.jsonl}", "problems: held_out_file must be a file, or held_out_limit at least 1"),
        ("problems: {file: '', held_out_file: b}", r"problems: file must be text that is not empty, got ''"),
        ("lora: {target: 'q_proj,,v_proj'}", r"target must be all-linear or names divided by commas, got 'q_proj"),
        ("differences: none", r"differences must be a list of texts, got 'none'"),
        ("report_to: [wandb, wandb]", "report_to must be different names"),
        ("report_to: wandb", "report_to must be a list of texts, got 'wandb'"),
        ("rounds: 0", r"rounds must be a whole number in \[1, 1000000\], got 0"),
        ("name: ''", r"name must be text that is not empty, got ''"),
        ("round: 3", r"round must be a mapping .* got 3"),
        ("reward: {tester_reward: 'no_such_module:A'}", "tester_reward must name a module .*no_such_module"),
        ("book: {policy: 'no_such_module:A'}", "policy must name a module .*no_such_module"),
        ("options: {selection: best}", "selection must be one of spread, random, all, hardest, first, ahead, got"),
        ("options: {access: [white-box]}", r"access must be one of white-box, black-box, got \['white-box'\]"),
        ("options: {turn_rounds: 0}", r"turn_rounds must be a whole number in \[1, 1000000\], got 0"),
        ("options: {turn_rounds: true}", r"turn_rounds must be a whole number in \[1, 1000000\], got True"),
        ("options: {tester_book: 1.0}", r"tester_book must be a whole number in \[0, 64\], got 1.0"),
        ("options: {opponent_share: .nan}", r"opponent_share must be a number in \[1e-06, 1.0\], got nan"),
        ("options: {selection: all}", r"attacked must be programs \(8\) with options.selection: all, got 1"),
        ("options: {selection: all, tester_book: 1}", f"{ALL} opponents: latest .* got 'latest' and 1"),
        ("options: {selection: all, opponents: uniform}", f"{ALL} .* got 'uniform' and 0"),
        ("options: {selection: ahead}", "reward.coder_tests must be union with options.selection: ahead, .* got 'own'"),
        ("{options: {validity_first_rounds: 3}, reward: {tester_reward: utrl}}", "0 unless .* code-a1, .* 3 with 'ut"),
        ("{options: {tester_book: 1}, reward: {oracle: majority}}", "oracle must be reference or golden .* 'majority'"),
        ("algorithm: {scale: null}", "scale must be one of group, batch, none, got None"),
        ("algorithm: {advantage: gae}", "advantage must be one of grpo, question, rae or module:Name, got 'gae'"),
        ("algorithm: {advantage: 'a b:C'}", "advantage must be one of .* got 'a b:C'"),
        ("algorithm: {loss_type: ppo}", "loss_type must be one of grpo, dr_grpo, dapo, .* or module:Name, got 'ppo'"),
        ("algorithm: {rate: 0}", r"rate must be a number in \[1e-06, 1.0\], got 0"),
        ("algorithm: {path: here}", "path must be a list of folders, got 'here'"),
        ("algorithm: {advantage: rae}", "scale must be none or batch with advantage: rae, .* got 'group'"),
        ("algorithm: {credit: test, advantage: question}", "test must come with advantage: grpo .* got 'question'"),
        ("{model: {pretrained: x}, prompts: nosuch}", "prompts must be one of begun, brief, codea1, evalplus"),
        ("{model: {pretrained: x}, prompts: begun, algorithm: {credit: test}}", "credit must be suite where prompts"),
        ("algorithm: {estimator: grpo}", "algorithm: a key must be one of .* got 'estimator'"),
        ("stop_at_fence: true", "stop_at_fence must be false with trainer: trl, got true"),
        ("stop_at_tests: true", "stop_at_tests must be false with trainer: trl, got true"),
        ("algorithm: {rollouts: generate}", "rollouts must be continuous with trainer: trl, .* generate"),
        ("trainer: packed", r"lora.rank must be at least 1 \(adapters only\)"),
        *((f"{{trainer: packed, lora: {{rank: 4{more}}}", message) for more, message in (
            ("}, grpo: {top_p: 0.9}", r"grpo.top_p must be 1 \(coder\) with trainer: packed, got 0.9"),
            (", target: q_proj}", "lora must be without dropout and target all-linear"),
            ("}, algorithm: {loss_type: cispo}", "algorithm.loss_type must be one of"),
            ("}, algorithm: {credit: test}", "algorithm.credit must be suite"),
            ("}, round: {updates: 16}", r"round.updates must be at most round.questions \(8\) .* got 16; or set train"),
            ("}, memory: {gradient_checkpointing: true}", "gradient_checkpointing must be false with trainer: packed"),
            ("}, memory: {coder_rows_per_device: 4}", "coder_rows_per_device must be 0 with trainer: packed, got 4"),
            ("}, placement: {coder: {ranks: 2}}", "placement.coder must be one rank on the CPU without vLLM"),
            ("}, stop_at_tests: true, reward: {fidelity: paper}", "stop_at_tests must be false with reward.fidelity"),
            ("}, model: {pretrained: x, context: 2048}", "tester_prompt_tokens must be at least 1 .*, got 0 and 0"),
        )),
        ("{placement: {coder: {gpus_per_node: 1, strategy: deepspeed}}, options: {schedule: alternating}}",
         "alternating must come with .* got deepspeed for the coder"),
        ("{placement: {tester: {gpus_per_node: 1, strategy: fsdp2}}, options: {opponents: uniform}}",
         "must be latest where a seat is sharded .* fsdp2 for the tester"),
        ("{seats: [coder, tester, tester_1], placement: {tester: {gpus_per_node: 1, vllm: server, vllm_server: h:1}}}",
         "placement.tester.vllm must be off or colocate with several testers"),
        *((f"placement: {{coder: {{{coder}}}}}", message) for coder, message in (
            ("gpus: 1", "placement: coder: a key must be one of"),
            ("ranks: 5", r"coder.ranks \* updates must divide 64 .rows a round., got 5 \* 1"),
            ("gpus_per_node: 2, ranks: 2, strategy: fsdp2", "every_rounds must be 0 .* sharded .coder: fsdp2., got 25"),
            ("nodes: 0", r"nodes must be a whole number in \[1, 1024\], got 0"),
            ("gpus_per_node: 2", "ranks must be one per GPU, 1 nodes . 2 = 2, got 1"),
            ("nodes: 2, ranks: 3", r"ranks must be a multiple of nodes \(2\), got 3"),
            ("strategy: zero", "strategy must be one of ddp, fsdp2, deepspeed, got 'zero'"),
            ("strategy: fsdp2", "strategy must be ddp on the CPU"),
            ("vllm: 'on'", "vllm must be one of off, colocate, server"),
            ("tensor_parallel: 2", "tensor_parallel must be 1 where vLLM is not colocated"),
            ("ranks: 4, vllm: colocate, tensor_parallel: 3", r"must divide the ranks of a node \(4\), got 3"),
            ("vllm: server, vllm_server: 'a:1'", "gpus_per_node must be at least 1 for vllm: server"),
            ("gpus_per_node: 1, vllm: server", "vllm_server must be HOST:PORT for vllm: server"),
            ("gpus_per_node: 1, vllm: server, vllm_server: host", "vllm_server must be HOST:PORT, got 'host'"),
            ("vllm_server: 'a:1'", "and empty otherwise, got 'a:1' for vllm: off"),
            ("vllm_memory: .nan", "vllm_memory must be a number"),
            ("memory_gb: -1", "memory_gb must be a number"),
        )),
    ],
)  # fmt: skip
def test_values_outside_their_range_and_unknown_keys_are_refused(overrides: str, message: str) -> None:
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    with pytest.raises(ConfigurationError, match=message):
        preset_from_dict(yaml.safe_load(overrides), MINI)


def test_a_config_file_overrides_the_preset_or_what_it_extends_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text("rounds: 7\nround: {suites: 8}\n")
    eight = dataclasses.replace(MINI, rounds=7, round=dataclasses.replace(MINI.round, suites=8))
    assert load_preset("mini", tmp_path / "plain.yaml") == eight
    (tmp_path / "ours.yaml").write_text("extends: 7b\nround: {questions: 128}\n")
    (tmp_path / "mine.yaml").write_text("extends: ours.yaml\nround: {suites: 4}\nlora: {rank: 16}\n")
    seven = load_preset("7b")
    shape, lora = dataclasses.replace(seven.round, questions=128, suites=4), dataclasses.replace(seven.lora, rank=16)
    assert load_preset(None, tmp_path / "mine.yaml") == dataclasses.replace(seven, round=shape, lora=lora)
    (tmp_path / "named.yaml").write_text("extends: smoke\n")
    assert load_preset("smoke", tmp_path / "named.yaml") == SMOKE


def test_a_section_becomes_another_kind_only_where_the_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("model: {pretrained: somewhere}\nproblems: {file: a.jsonl, held_out_file: b.jsonl}\n")
    changed = load_preset("mini", file)
    assert (changed.model, changed.problems) == (PretrainedModel("somewhere"), ProblemFiles("a.jsonl", "b.jsonl"))
    file.write_text("extends: 7b\nproblems: {train: 20}\n")  # not by the way: the run would train on something else
    with pytest.raises(ConfigurationError, match=r"problems: a key must be one of \['file', .*, got 'train'"):
        load_preset(None, file)
    small = {name: MINI.to_dict()[name] for name in ("model", "round", "grpo")}
    assert preset_from_dict(small, load_preset("7b")).model == MINI.model


NO_FILE = "mine.yaml must be a mapping|config must be a readable YAML file, got .*mine.yaml"


@pytest.mark.parametrize(
    ("preset", "content", "message"),
    [
        (None, "extends: 8b", r"extends must be one of .*'7b'.* or a YAML file, got '8b'"),
        (None, "extends: [7b]", r"extends must be one of .* or a YAML file, got \['7b'\]"),
        (None, "extends: nowhere.yaml", r"config must be a readable YAML file, got .*nowhere.yaml"),
        (None, "extends: mine.yaml", r"extends must come to an end, got .*mine.yaml again"),
        ("mini", "extends: 7b", r"preset must be left out or be what .* extends \(7b\), got 'mini'"),
        ("mini", "rounds: 7\nseed: 1\nrounds: 8\n", "line 3 must not have a key again, got 'rounds' as on line 1; lea"),
        ("mini", "round:\n  suites: 4\n  'suites': 8\n", "line 3 must not have a key again, got 'suites' as on line 2"),
        ("mini", "a: [{b: 1, b: 2}]", "line 1 must not have a key again, got 'b' as on line 1"),
        *[("mini", text, NO_FILE) for text in ("- a list", "a: [unclosed", "\x00", "3")],
    ],
)
def test_what_is_no_configuration_is_refused(preset: str | None, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(content)
    with pytest.raises(ConfigurationError, match=message):
        load_preset(preset, tmp_path / "mine.yaml")


def test_arguments_override_the_mini_preset_and_a_runs_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = parse_arguments("", [])
    assert (arguments.preset, arguments.seed, arguments.resume) == (MINI, 0, False)
    assert arguments.output == Path("runs/mini-seed0")
    arguments.output.mkdir(parents=True)
    assert parse_arguments("", []).output == Path("runs/mini-seed0-2")
    assert parse_arguments("", [], "golden").output == Path("runs/golden-seed0")
    assert parse_arguments("", ["--preset", "smoke"], "golden").output == Path("runs/golden-smoke-seed0")
    arguments = parse_arguments("", "--preset smoke --rounds 9 --save-rounds 3 --seed 5 --output new".split())
    assert arguments.preset == dataclasses.replace(SMOKE, rounds=9, save_rounds=3)
    assert (arguments.seed, arguments.output) == (5, Path("new"))
    told = {"": ("tensorboard",), "--report-to none": (), "--report-to tensorboard": ("tensorboard",)}
    assert {more: parse_arguments("", more.split()).preset.report_to for more in told} == told
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    preset = dataclasses.replace(SMOKE, rounds=6)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"seed": 4, "preset": preset.to_dict()}))
    assert read_configuration(tmp_path / "config.yaml") == (preset, 4)
    arguments = parse_arguments("", ["--resume", str(tmp_path), "--rounds", "8"])
    assert (arguments.seed, arguments.output, arguments.resume) == (4, tmp_path, True), "that of a run is its own"
    assert arguments.preset == dataclasses.replace(preset, rounds=8)


BAD_ARGUMENTS = {
    "--preset smoek": f"preset must be one of {', '.join(preset_names())}, got smoek; did you mean smoke?",
    "--rounds 0": "--rounds must be a whole number in [1, 1000000], got 0",
    "--rounds many": "--rounds must be a whole number in [1, 1000000], got many",
    "--save-rounds -1": "--save-rounds must be a whole number in [1, 1000000], got -1",
    "--seed 1.5": "--seed must be a whole number in [0, 2147483647], got 1.5",
    "--seed ''": "--seed must be a whole number in [0, 2147483647], got ",
    "--preset ''": "preset must be one of ",
    "--engine ''": "--engine must be one of local, ray, got ",
    "--ray-address auto": "--ray-address must come with --engine ray, got --engine local",
    "--engine rya": "--engine must be one of local, ray, got rya",
    "--config nowhere.yaml": "config must be a readable YAML file, got nowhere.yaml: No such file",
    "--resume nowhere": "--resume must be the directory of a run, got nowhere",
    "--resume nowhere --seed 1": "--resume must come without --seed",
    "--resume nowhere --dry-run --model m": "--resume must come without --model",
    "--preset 7b": "problems.file must be a problem file, got kodcode.jsonl, which is not there; `codea1 data import`",
    "--output agents\udcff": r"--output must be a name in UTF-8, got 'agents\udcff'",
    "--output agents": "--output must be a new or empty directory, got agents",
    "--report-to nowhere": "--report-to must be different names",
    "--report-to none --report-to wandb": "--report-to must be different names",
    "--report-to wandb --report-to wandb": "--report-to must be different names",
    "--unknown": "an argument must be one of those in --help, got --unknown",
    "--pre smoke": "an argument must be one of those in --help, got --pre smoke; did you mean --preset?; see ",
    "--keep-checkpoints 0": "--keep-checkpoints must be a whole number in [1, 1000000], got 0",
    "--preset 7b --problems {folder}": "problems.file must be a problem file, got ",
    "--config {folder}/link": "config must be a readable YAML file, got ",
    "--config {folder}/long.yaml": f"rounds must be a whole number in [1, 1000000], got '{'a' * 199}...\n",
    "--config {folder}/ranks.yaml": "placement.coder must be one rank on the CPU with --engine local",
    **({"--engine ray --ray-address ray://h:1": "--ray-address must be HOST:PORT or auto"} if find_spec("ray") else {}),
}


@pytest.mark.parametrize("more", ["", " --dry-run"], ids=["run", "plan"])
@pytest.mark.parametrize("argv", BAD_ARGUMENTS)
def test_a_bad_argument_ends_in_one_line(argv: str, more: str, capsys: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    if more and argv in ("--preset 7b", "--config {folder}/ranks.yaml"):
        pytest.skip("a plan may be made before the problems are there, and of a run under the other engine")
    (tmp_path / "ranks.yaml").write_text("placement: {coder: {ranks: 2}}")
    (tmp_path / "long.yaml").write_text(f"rounds: {'a' * 9000}")
    (tmp_path / "link").symlink_to("link")
    said = ended(capsys, *shlex.split(argv.format(folder=tmp_path) + more))
    assert BAD_ARGUMENTS[argv] in said
    assert said.count("\n") == 1


CONFIG = {"config.json": b'{"model_type": "qwen2", "max_position_embeddings": 512}'}
BARE = CONFIG | {"chat_template.jinja": b"{{ messages }}"}
UNREAD = "have whole files of weights, got {}/model.safetensors"
BAD_MODELS: list[tuple[bytes | dict[str, bytes] | None, str]] = [
    (None, "be a directory"),
    (b"no model", "be a directory"),
    ({"README.md": b""}, "hold a config.json, got none in"),
    (CONFIG, "have a chat template"),
    (BARE, "hold its weights, model.safetensors or model.safetensors.index.json, got neither in {}"),
    *((BARE | {"model.safetensors": weights}, why) for weights, why in {
        **dict.fromkeys((b"no model", b"", b"\2\0\0\0\0\0\0\0[]"), f"{UNREAD}: its header cannot be read"),
        b"\2\0\0\0\0\0\0\0{}cut": f"{UNREAD} of 13 bytes, whose header says 10",
        b"\2\0\0\0\0\0\0\0{}": "have max_position_embeddings for the coder's prompt and response, .* got 512 in {}",
    }.items()),
]  # fmt: skip


@pytest.mark.parametrize("argv", ["--preset 0.5b-smoke", "--preset 0.5b-smoke --dry-run", "--preset 1.5b"])
@pytest.mark.parametrize(("files", "why"), BAD_MODELS)
def test_a_model_that_cannot_be_trained_is_told(files: Any, why: str, argv: str, tmp_path: Path, capsys: Any) -> None:
    if "--dry-run" in argv and files in (None, BARE):
        pytest.skip("a plan may be made before the weights are there")
    model = tmp_path / ("model.gguf" if isinstance(files, bytes) else "model")
    if isinstance(files, bytes):
        model.write_bytes(files)
    for name, content in files.items() if isinstance(files, dict) else ():
        model.mkdir(exist_ok=True)
        (model / name).write_bytes(content)
    said = ended(capsys, *argv.split(), "--model", str(model))
    assert re.search(f"--model must {why.format(model)}", said.splitlines()[-1])


def test_a_gguf_file_is_planned_without_its_package(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    sizes = {"block_count": 24, "embedding_length": 896, "feed_forward_length": 4864, "attention.head_count": 14,
             "attention.head_count_kv": 2}  # fmt: skip
    keys = {"general.architecture": "qwen2", "tokenizer.chat_template": "{{ x }}"}
    keys |= {f"qwen2.{name}": size for name, size in sizes.items()}
    keys["tokenizer.ggml.tokens"] = [str(token) for token in range(151_936)]
    file, problems = str(tmp_path / "tiny.gguf"), str(tmp_path / "problems.jsonl")
    write_header(Path(file), keys, {"token_embd.weight": (896, 151_936)})
    monkeypatch.setitem(sys.modules, "gguf", None)
    said = ended(capsys, "--preset", "0.5b", "--dry-run", "--model", file, status=0)
    assert f"model      {file}, 494,032,768 weights" in said
    write_problems(Path(problems), bundled_problems())
    said = ended(capsys, "--preset", "0.5b-smoke", "--model", file, "--problems", problems)
    assert f"{file} needs the extra `gguf`, got none: pip install" in said


def test_help_gives_the_default_of_every_argument(capsys: pytest.CaptureFixture[str]) -> None:
    text = ended(capsys, "--help", status=0)
    options = "--preset --config --output --seed --rounds --save-rounds --keep-checkpoints --resume --dry-run".split()
    options += ["--model", "--problems", "--keep-duels", "--engine", "--ray-address", "--report-to"]
    assert all(option in text for option in options)
    assert text.count("Default:") == len(options)


def test_an_argument_for_both_seats_replaces_what_a_single_one_had_and_generations_are_the_size_of_groups() -> None:
    bands, each, single = load_preset("bands").grpo, ("coder", "tester"), {"num_generations": 6}
    assert [bands.of(seat)["learning_rate"] for seat in each] == [3e-4, 5e-4]
    both = bands.changed({"learning_rate": 1e-3, "tester": {"beta": 0.0}})
    assert [both.of(seat)["learning_rate"] for seat in each] == [1e-3, 1e-3]
    assert [both.of(seat)["beta"] for seat in each] == [0.001, 0.0]
    assert [both.of(seat)["max_completion_length"] for seat in (*each, "player")] == [40, 24, 40]
    both_ways: dict[str, Any] = single | {"coder": {"num_generations": 2, "beta": 0.5}}
    for grpo, sizes in ((single, (6, 6)), ({"tester": single}, (MINI.round.programs, 6)), (both_ways, (2, 6))):
        preset = preset_from_dict({"grpo": grpo, "round": {"questions": 8}}, MINI)
        assert (preset.round.programs, preset.round.suites) == sizes
        assert "num_generations" not in preset.grpo.of("coder")
        assert preset.grpo.of("coder")["beta"] == grpo.get("coder", {}).get("beta", MINI.grpo.of("coder")["beta"])


def test_any_other_argument_of_trl_needs_no_code() -> None:
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    grpo = MINI.grpo.changed({"top_entropy_quantile": 0.5, "tester": {"sapo_temperature_pos": 1.5}, "delta": None})
    assert (grpo.of("coder")["top_entropy_quantile"], grpo.of("tester")["sapo_temperature_pos"]) == (0.5, 1.5)
    linear = MINI.grpo.changed({"lr_scheduler_type": "linear"}).of("coder")
    assert linear["lr_scheduler_kwargs"] == {}, "not what the first schedule was told"
    alone = MINI.grpo.changed({"tester": {"lr_scheduler_type": "linear"}})
    assert [alone.of(seat)["lr_scheduler_kwargs"] for seat in ("coder", "tester")] == [{"min_lr_rate": 1.0}, {}]
    again = alone.changed({"lr_scheduler_type": "constant", "coder": {"lr_scheduler_kwargs": {"min_lr": 0.0}}})
    assert again.of("tester")["lr_scheduler_kwargs"] == {} != again.of("coder")["lr_scheduler_kwargs"]


def test_a_schedule_that_cannot_be_built_is_refused_at_start() -> None:
    pytest.importorskip("trl", reason="the extra `train` is not installed")
    from codea1_env.training.policies.arguments import require_schedules

    for name in ("linear", "constant", "inverse_sqrt", "polynomial", "cosine_with_restarts"):
        require_schedules(preset_from_dict({"grpo": {"lr_scheduler_type": name}}, MINI))
    stable, kept = {"lr_scheduler_type": "warmup_stable_decay"}, {"num_decay_steps": 2, "decay_type": "linear"}
    require_schedules(preset_from_dict({"grpo": stable | {"lr_scheduler_kwargs": kept}}, MINI))
    for given, says in (
        (stable, "num_decay_steps"),
        ({"lr_scheduler_kwargs": {"nokey": 1}}, "nokey"),
        ({"lr_scheduler_kwargs": None}, "One of min_lr or min_lr_rate should be set"),
    ):
        with pytest.raises(ConfigurationError, match=rf"grpo.lr_scheduler_kwargs must be what .* takes .*: .*{says}"):
            require_schedules(dataclasses.replace(MINI, grpo=MINI.grpo.changed(given)))


def test_every_choice_is_kept_by_a_configuration_file() -> None:
    choices = {"selection": SELECTIONS, "access": ACCESSES, "schedule": SCHEDULES, "opponents": OPPONENTS}
    given = [("options", {name: choice}) for name, among in choices.items() for choice in among]
    given += [("algorithm", {"credit": "test"}), ("algorithm", {"advantage": "rae", "scale": "batch", "rate": 0.05})]
    given += [("grpo", {"top_entropy_quantile": 0.5}), ("placement", {"tester": {"nodes": 2, "ranks": 4}})]
    for section, values in given:
        preset = preset_from_dict({"round": {"attacked": 8}, "reward": {"coder_tests": "union"}, section: values}, MINI)
        for over in (MINI, SMOKE):
            assert preset_from_dict(preset.to_dict(), over) == preset
        if section not in ("grpo", "placement"):  # by seat
            assert preset.to_dict()[section].items() >= values.items()
    assert preset.placement == Placement(tester=SeatPlacement(nodes=2, ranks=4)), "one seat; the other is as it was"
    further = preset_from_dict({"placement": {"tester": {"ranks": 2}}}, preset)
    assert further.placement == Placement(tester=SeatPlacement(nodes=2, ranks=2))


def test_an_array_is_no_choice_and_is_refused_as_any_other_value() -> None:
    with pytest.raises(ConfigurationError, match=r"schedule must be one of .*, got array"):
        Options(schedule=np.array(["alternating", "simultaneous"]))  # type: ignore[arg-type]


def test_seats_take_turns_validity_comes_first_and_a_share_of_past_answers_is_rounded_up() -> None:
    """The coder begins. Four rounds from 1 to 0.5: 1, 0.875, 0.75, 0.625, then 0.5 for good."""
    options = Options(schedule="alternating", turn_rounds=2)
    assert [options.learns("coder", index) for index in range(6)] == [True, True, False, False, True, True]
    assert [options.learns("tester", index) for index in range(6)] == [False, False, True, True, False, False]
    assert all(Options().learns(seat, index) for seat in ("coder", "tester") for index in range(6))
    options = Options(validity_first_rounds=4)
    assert [options.alpha(0.5, index) for index in range(6)] == [1, 0.875, 0.75, 0.625, 0.5, 0.5]
    assert [Options().alpha(0.3, index) for index in range(2)] == [0.3, 0.3]
    assert Options().past(8) == 0
    assert [Options(opponents="uniform", opponent_share=0.25).past(answers) for answers in (8, 4, 3)] == [2, 1, 1]


def test_trl_is_told_the_device_the_sharding_and_the_generator(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="the extra `train` is not installed")
    off = ("bf16", "gradient_checkpointing", "dataloader_pin_memory", "use_vllm")
    assert trainer_arguments(SeatPlacement()) == {"use_cpu": True, **dict.fromkeys(off, False)}
    vllm: dict[str, Any] = {"vllm": "colocate", "tensor_parallel": 2, "vllm_memory": 0.4}
    told = trainer_arguments(SeatPlacement(nodes=2, gpus_per_node=4, ranks=8, strategy="fsdp2", **vllm))
    assert (told["use_cpu"], told["bf16"], told["fsdp"], told["fsdp_config"]["version"]) == (False, True, True, 2)
    assert told["vllm_enable_sleep_mode"] is True
    assert (told["vllm_mode"], told["vllm_tensor_parallel_size"]) == ("colocate", 2)
    # The pinned TRL knows every name and takes the sharding as meant; this machine has no GPU.
    config = trl.GRPOConfig(output_dir=str(tmp_path), **(told | {"use_cpu": True, "bf16": False}))
    assert config.fsdp_plugin_args["fsdp_version"] == 2
    assert config.fsdp_plugin_args["activation_checkpointing"] is True
    told = trainer_arguments(SeatPlacement(gpus_per_node=1, strategy="deepspeed", vllm="server", vllm_server="h:8000"))
    assert told.pop("deepspeed")["zero_optimization"]["stage"] == 3  # whose library is not here
    assert (told["vllm_server_base_url"], told["vllm_group_port"]) == ("http://h:8000", 51216)
    config = trl.GRPOConfig(output_dir=str(tmp_path), **(told | {"use_cpu": True, "bf16": False}))
    assert config.vllm_mode == "server"
    assert trainer_arguments(SeatPlacement(ranks=2))["ddp_find_unused_parameters"] is False
