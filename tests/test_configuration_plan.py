"""The plan of a run: what it prints adds up, weights are counted as published, and what cannot work is refused."""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_lines import ended

from codea1_env.configuration.arguments import parse_arguments
from codea1_env.configuration.batches import CODE_A1, ROLES, seat_rows
from codea1_env.configuration.memory_estimate import cached_positions, cached_rows, packed_memory, seat_memory
from codea1_env.configuration.model_sections import KNOWN, LoraPreset, ModelShape, PretrainedModel, shape_of
from codea1_env.configuration.plan import plan_of
from codea1_env.configuration.presets import MINI, Preset, load_preset, preset_from_dict, preset_names
from codea1_env.errors import ConfigurationError

ROOT = Path(__file__).parent.parent
GIB = 1 << 30
SEVEN, HALF = load_preset("7b"), load_preset("0.5b")
NUMBER = re.compile(r"^  (.+?) {2,}([\d,.]+)(?: +([\d,.]+))?$", re.MULTILINE)
BOTH = ROLES[CODE_A1]


def table(text: str) -> dict[str, tuple[float, ...]]:
    """Every line with a number for each seat."""
    found: dict[str, tuple[float, ...]] = {}
    for name, *numbers in NUMBER.findall(text):
        assert name.strip() not in found, f"{name} stands twice"
        found[name.strip()] = tuple(float(number.replace(",", "")) for number in numbers if number)
    return found


@pytest.mark.parametrize("name", preset_names())
def test_the_printed_plan_of_every_preset_adds_up(name: str) -> None:
    """To the printed digits. A column is a seat's; the packed trainer's memory has one for each device."""
    preset = load_preset(name)
    rows, shape, is_packed = table(plan_of(preset)), preset.round, preset.trainer == "packed"
    for place, device in enumerate(("cpu", "cuda")):
        column = {key: value[place] for key, value in rows.items()}
        own = packed_memory(preset, device, BOTH).kept
        kept = sum(column[part] for part in (own if is_packed else ("weights", "optimizer", "reference", "libraries")))
        for phase in ("while it learns", "while it samples", *(["while it loads"] if is_packed else [])):
            added = [value for key, value in column.items() if key.startswith("+ ") and key.endswith(phase)]
            assert kept + sum(added) == pytest.approx(column[f"= {phase}"], abs=0.006)
            assert is_packed or column[f"= {phase}"] <= column.get("of", float("inf"))
        assert column["sampled rows"] == column["sampled"] * (column["prompt"] + column["response"])
        final = column["+ final adapter" if is_packed else "+ final model"]
        assert column["a checkpoint"] * column["* kept"] + final == pytest.approx(column["= at most"], abs=0.003)
        if is_packed:
            assert column["learnt from"] % column["in groups of"] == 0
        else:
            assert column["= ranks"] * column["* passes"] * column["* rows a pass"] == column["rows a step"]
            assert column["rows a step"] * shape.updates == column["learnt from"]
            assert column["learnt rows"] == column["learnt from"] * (column["prompt"] + column["response"])
    if not is_packed:
        programs = shape.questions * shape.programs
        assert rows["sampled"] == (programs, programs * shape.suites)
        assert rows["learnt from"] == (programs, shape.questions * shape.attacked * shape.suites)


SAMPLED_AND_LEARNT = {
    "code_a1": {"coder": (32, 32), "tester": (64, 16)},
    "frozen": {"coder": (32, 32), "tester": (64, 0)},
    "self-play": {"player": (96, 48)},
    "golden": {"coder": (32, 32)},
    "static": {"coder": (32, 32)},
    "expert": {"coder": (32, 32)},
    "sft": {"tester": (0, 16)},
    "base": {},
}
"""By hand, of the preset 0.5b: 4 questions, 8 programs, 2 suites against each, those against 2 programs learnt from."""


@pytest.mark.parametrize("recipe", ROLES)
def test_a_plan_has_the_models_of_its_recipe_and_no_others(recipe: str) -> None:
    rows, seats = table(plan := plan_of(HALF, recipe)), SAMPLED_AND_LEARNT[recipe]
    for name in ("mini", "7b"):
        of_whole_models = plan_of(load_preset(name), recipe)
        assert ("with the Mistake Book" in of_whole_models) == ROLES[recipe].has_book
        assert re.findall(r"^(coder|tester|player) +ranks", of_whole_models, re.MULTILINE) == list(seats)
        if recipe == "frozen":
            found = table(of_whole_models)
            assert found["optimizer"][0] > found["optimizer"][1] == found["+ gradients, while it learns"][1] == 0
    titles = [title.split() for title in re.findall(r"^rows a round(.*)$", plan, re.MULTILINE)]
    assert titles == ([list(seats)] if seats else [])
    if not seats:
        assert rows == {}
        return
    assert list(zip(rows["sampled"], rows["learnt from"], strict=True)) == list(seats.values())
    learning = [seat for seat, (_, learnt) in seats.items() if learnt]
    assert len(rows["a checkpoint"]) == len(learning)
    assert ("the arena runs at most" in plan) == ROLES[recipe].has_suites
    kept, trained = packed_memory(HALF, "cpu", ROLES[recipe]).kept, shape_of(HALF.model).adapter_parameters(HALF.lora)
    assert (kept["adapters"], kept["optimizer"]) == (len(seats) * 4 * trained, len(learning) * 8 * trained)


def test_memory_of_the_packed_trainer_by_hand() -> None:
    """0.5B: 494,032,768 weights, the head in the embedding, 24 layers, 896 wide, 2 heads of keys of 64 numbers."""
    cpu, gpu = packed_memory(HALF, "cpu", BOTH), packed_memory(HALF, "cuda", BOTH)
    stored = 2 * 151_936 * 896
    assert cpu.kept["base"] == 4 * 494_032_768 + stored, "the head once, and the embedding as it is stored"
    assert gpu.kept["base"] == 2 * 494_032_768
    trained = shape_of(HALF.model).adapter_parameters(HALF.lora)
    assert cpu.kept["adapters"] + cpu.kept["optimizer"] == 2 * 12 * trained
    # The tester has 64 rows of 1,024 and 200 tokens, for which there is room up to a multiple of 64 (and of 128).
    assert cpu.sampling["keys and values"] == 64 * 1280 * 2 * 24 * 2 * 64 * 4
    assert gpu.kept["keys and values"] == 64 * 1280 * 2 * 24 * 2 * 64 * 2
    assert cpu.learning["activations"] == 24 * 1224 * 4 * (6 * 896 + 2 * 128 + 2 * 4864)


def test_the_plan_counts_suites_that_are_written_ahead_and_what_they_run_on() -> None:
    """4 questions, 4 suites of 4 tests against 2 of 8 programs: 32 suites, 128 asserts, each run on 8 programs."""
    shared = {"round": {"suites": 4}, "reward": {"coder_tests": "union"}, "options": {"selection": "ahead"}}
    plan = plan_of(preset_from_dict(shared, HALF))
    assert "4 questions, 8 programs each, 4 suites against 2 of them; the suites against 2 train the tester" in plan
    assert "at most 128 asserts on references, 1,024 on programs" in plan
    assert next(line.split()[-1] for line in plan.splitlines() if line.startswith("  sampled ")) == "32"


def test_the_plan_counts_the_room_that_the_engine_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import tiny_chat_model
    from tiny_language_models import random_model

    from codea1_env.language_models.continuous import ContinuousEngine
    from codea1_env.language_models.loading import ready
    from codea1_env.language_models.rollouts import RolloutRequest, RolloutSampling

    monkeypatch.setattr("codea1_env.language_models.at_once.CACHED", 3000)
    limits = {"coder_prompt_tokens": 1, "tester_prompt_tokens": 70}
    preset = preset_from_dict({"round": limits, "grpo": {"tester": {"max_completion_length": 4}}}, HALF)
    engine = ContinuousEngine(ready(random_model("qwen2"), tiny_chat_model.tiny_tokenizer(), source="tiny"))
    with tiny_chat_model.one_thread():
        rows = seat_rows(preset, "tester").sampled
        engine.sample([RolloutRequest((5,) * 70, rows, (0,))], RolloutSampling(max_tokens=4))
    assert engine._cache is not None
    slots, positions = cached_rows(preset, "tester", "cpu"), cached_positions(preset, "tester", "cpu")
    assert (slots, positions) == (48, 128)
    shape = engine.model.base.shape
    assert len(engine._cache) == shape.layers * 2 * slots * shape.key_heads * positions * shape.head


def configuration(shape: ModelShape) -> dict[str, Any]:
    """As such a model's config.json has it."""
    renamed = {"layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads"}
    renamed |= {"key_value_heads": "num_key_value_heads", "vocabulary": "vocab_size", "tied": "tie_word_embeddings"}
    return {name: getattr(shape, own) for own, name in (renamed | {"feed_forward": "intermediate_size"}).items()}


def test_the_page_on_gpus_has_the_plan_that_is_printed(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    (command,) = re.findall(r"^    python agents/train_grpo.py (.* --dry-run)$", page, re.MULTILINE)
    (shown,) = re.findall(r"<!-- 1.5b: begin -->\n```text\n(.*?)```\n<!-- 1.5b: end -->", page, re.DOTALL)
    (tmp_path / "qwen-1.5b").mkdir()
    sizes = configuration(dataclasses.replace(KNOWN["Qwen/Qwen2.5-Coder-1.5B-Instruct"], tied=False))  # the head apart
    (tmp_path / "qwen-1.5b" / "config.json").write_text(json.dumps({**sizes, "model_type": "qwen2"}))
    (tmp_path / "qwen-1.5b" / "chat_template.jinja").write_text("of an instruct model")
    monkeypatch.chdir(tmp_path)
    assert f"\n{shown}" in ended(capsys, *command.split(), status=0)
    assert "must have" in shown


def test_the_page_says_what_fits_on_one_gpu_with_adapters() -> None:
    """Rows a pass double until the plan refuses them."""
    seat = {"gpus_per_node": 1, "ranks": 1, "strategy": "ddp", "vllm": "colocate", "vllm_memory": 0.3}
    lines = ["| | 0.5b | 1.5b | 3b |", "|---|---|---|---|"]
    models = [f"Qwen/Qwen2.5-Coder-{size}B-Instruct" for size in ("0.5", "1.5", "3")]
    changes = [{"model": {"pretrained": model}, "lora": {"rank": 16}} for model in models]
    packed = [packed_memory(preset_from_dict(each, HALF), "cuda", BOTH).need / GIB for each in changes]
    cells = " | ".join(f"{need:.1f}" for need in packed)
    lines.append(f"| both seats on one base (`0.5b`), GiB of the GPU | {cells} |")
    for gib in (24, 80):
        found = [0, 0, 0]
        for place, change in enumerate(changes):
            for rows in (1, 2, 4, 8):
                memory = {"gpu_gib": gib, "coder_rows_per_device": rows, "tester_rows_per_device": rows}
                sections = {**change, "placement": {"coder": seat, "tester": seat}, "memory": memory}
                with contextlib.suppress(ConfigurationError):
                    assert "trained: adapters of" in plan_of(preset_from_dict(sections, load_preset("1.5b")))
                    found[place] = rows
        lines.append(f"| a seat under TRL, rows a pass in {gib} GiB | {' | '.join(map(str, found))} |")
    page = (ROOT / "docs" / "cluster.md").read_text()
    assert "<!-- adapters: begin -->\n{}\n<!-- adapters: end -->".format("\n".join(lines)) in page


def test_weights_are_counted_as_published_and_sizes_read_from_a_saved_models_configuration(tmp_path: Path) -> None:
    """The sums of the tensors in the published files."""
    published = {"0.5B": 494_032_768, "1.5B": 1_543_714_304, "3B": 3_085_938_688, "7B": 7_615_616_512}
    for size, weights in published.items():
        assert KNOWN[f"Qwen/Qwen2.5-Coder-{size}-Instruct"].parameters == weights
    seven = KNOWN["Qwen/Qwen2.5-Coder-7B-Instruct"]
    (tmp_path / "config.json").write_text(json.dumps(configuration(seven)))
    assert shape_of(PretrainedModel(str(tmp_path))) == seven
    (tmp_path / "config.json").write_text("{}")
    for nowhere in (str(tmp_path), "some/model"):
        with pytest.raises(ConfigurationError, match=r"--model must be one of .* or there is no plan, got"):
            shape_of(PretrainedModel(nowhere))


def test_adapters_are_counted_where_they_are() -> None:
    """Hidden 4, feed-forward 8. (Of all layers, against peft: test_language_models.py.)"""
    shape = ModelShape(4, 1, 2, 1, 8, 10, tied=False)
    assert shape.adapter_parameters(LoraPreset(rank=3, target="q_proj, down_proj")) == 3 * (4 + 4) + 3 * (8 + 4)
    with pytest.raises(ConfigurationError, match=r"lora.target must be all-linear or among q_proj, .*, got \['head'\]"):
        shape.adapter_parameters(LoraPreset(rank=3, target="q_proj,head"))


def test_memory_of_the_7b_run_and_of_its_adapters_by_hand() -> None:
    """16 bytes a weight over 4 GPUs, 4 more for the reference; of a cached token 2 * 28 layers * 512 * 2 bytes.
    Adapters need no reference and little for the optimizer."""
    weights = 7_615_616_512
    found = seat_memory(SEVEN, "tester")
    assert found.kept["weights"] + found.learning["gradients"] + found.kept["optimizer"] == 16 * weights // 4
    assert found.kept["reference"] == 4 * weights // 4
    assert found.learning["logits"] == 2 * 4096 * 152_064 * 14
    assert found.sampling["vLLM weights"] == 2 * weights
    assert found.sampling["vLLM weights"] + found.sampling["vLLM cache"] == int(0.4 * 80 * GIB)
    assert KNOWN["Qwen/Qwen2.5-Coder-7B-Instruct"].cached_bytes(2) == 57_344
    assert found.checkpoint == 12 * weights
    adapted = preset_from_dict({"lora": {"rank": 16}}, SEVEN)
    found, trained = seat_memory(adapted, "coder"), shape_of(SEVEN.model).adapter_parameters(adapted.lora)
    assert (found.kept["reference"], found.kept["optimizer"], found.checkpoint) == (0, 8 * trained // 4, 12 * trained)
    assert f"{trained:,}" in plan_of(adapted)


IMPOSSIBLE = [
    ("memory: {gpu_gib: 40}", r"a GPU of the coder must hold 6\d.\d+ GiB while it .*, got 40 .*: "),
    ("memory: {coder_rows_per_device: 8}", r"most is logits .*: lower memory.coder_rows_per_device \(8\)$"),
    ("tester: {strategy: ddp}", r"tester must hold .* most is optimizer .*: set placement.tester.strategy: fsdp2"),
    ("tester: {vllm: off}", r"most is cache .*: set placement.tester.vllm: colocate"),
    ("coder: {vllm_memory: 0.9}", r"samples, .* most is vLLM cache .*: lower placement.coder.vllm_memory"),
    ("coder: {vllm_memory: 0.1}", r"vLLM of the coder must have room for one row of 8192 tokens, .*, got 0.000"),
    ("coder: {nodes: 8, gpus_per_node: 64, ranks: 512}", "groups of 8 .*, got 4 .* 2048 .* 512 .*; make .* divide 256"),
]


@pytest.mark.parametrize(("text", "message"), IMPOSSIBLE)
def test_a_run_that_cannot_work_is_refused_with_what_to_change(text: str, message: str) -> None:
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    overrides = yaml.safe_load(text.replace(" off", " 'off'"))
    if "memory" not in overrides:
        overrides = {"placement": overrides, "memory": {"coder_rows_per_device": 2}}
    with pytest.raises(ConfigurationError, match=message):
        plan_of(preset_from_dict(overrides, SEVEN))


def test_a_plan_that_nobody_reads_to_its_end_leaves_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, str(ROOT / "agents" / "train_grpo.py"), "--preset", "smoke", "--dry-run"]
    ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    os.close(write)
    assert (ended.returncode, ended.stderr) == (141, "")


ALL_AT_ONCE = """
import runpy, sys
for line in sys.argv[1:]:
    sys.argv = line.split()
    try:
        runpy.run_path(sys.argv[0], run_name='__main__')
    except SystemExit as ended:
        print(ended.code, {'torch', 'transformers', 'ray'} & set(sys.modules), end='\\0')
"""


def test_a_dry_run_of_every_preset_prints_the_plan_without_torch_and_ends_well() -> None:
    plans = {f"agents/train_grpo.py --preset {name}": plan_of(load_preset(name)) for name in preset_names()}
    plans["baselines/golden_tests.py"] = plan_of(MINI, "golden")
    command = [sys.executable, "-c", ALL_AT_ONCE, *(f"{line} --dry-run" for line in plans)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split("\0") == [*(f"{plan}\n0 set()" for plan in plans.values()), ""]


@pytest.mark.parametrize("recipe", ["golden", "frozen", "sft", "self-play", "base"])
def test_a_second_tester_is_refused_where_the_recipe_has_no_place_for_it(recipe: str, tmp_path: Path, capsys) -> None:
    file = tmp_path / "three.yaml"
    file.write_text("extends: smoke\nseats: [coder, tester, tester_1]\n")
    with pytest.raises(SystemExit, match="2"):
        parse_arguments("", ["--config", str(file), "--dry-run"], recipe)
    assert f"seats must be left out in a recipe in which not both of them learn ({recipe})" in capsys.readouterr().err


def test_a_second_tester_has_a_column_and_its_asserts_are_counted() -> None:
    two = dataclasses.replace(load_preset("smoke"), seats=("coder", "tester", "tester_1"))
    plan, one = plan_of(two), plan_of(load_preset("smoke"))
    # 2 questions of 2 programs, 2 suites of each tester against each, K = 4: 2 * 2 * 2 * 4 = 32 asserts a tester.
    assert "at most 32 asserts on references, 32 on programs, and 32 replays" in one
    assert "at most 64 asserts on references, 64 on programs, and 32 replays" in plan
    assert "2 programs each, 4 suites a program" in plan
    assert re.search(r"^  sampled +4 +8 +8$", plan, re.MULTILINE)
    assert re.search(r"^tester_1 +ranks 0 to 0: 1 on the CPU", plan, re.MULTILINE)
    assert "tester_1" in plan_of(dataclasses.replace(HALF, seats=two.seats))


def test_what_the_past_adds_is_counted() -> None:
    changes = {"options": {"opponents": "uniform", "opponent_share": 0.5, "tester_book": 3}}
    plan = plan_of(preset_from_dict(changes, load_preset("smoke")))
    # 2 questions, K = 4. 2 * 2 suites against the present programs, one more of an old tester against each: 6. Against
    # 1 program of an old coder and 3 of the book 2 each: 8. 2 * 4 * 14 = 112; 8 replays on 2 * (2 + 4) programs: 96.
    assert "at most 112 asserts on references, 112 on programs, and 96 replays" in plan
    assert "in no row above: 4 programs a question, 1 suites a program" in plan
    union = plan_of(preset_from_dict(changes | {"reward": {"coder_tests": "union"}}, load_preset("smoke")))
    # All 6 suites on 2 programs, and the 8 on 4: 2 * 4 * (12 + 32) = 352.
    assert "at most 112 asserts on references, 352 on programs" in union
    assert "in no row above" not in plan_of(load_preset("smoke"))
    kept = table(
        plan_of(preset_from_dict({"rounds": 9, "options": {"opponents": "uniform", "opponent_every": 4}}, HALF))
    )
    assert kept["+ 2 snapshots"] == pytest.approx([2 * final for final in kept["+ final adapter"]], abs=0.002)
    assert kept["= at most"] == pytest.approx(
        [3 * each + 3 * final for each, final in zip(kept["a checkpoint"], kept["+ final adapter"], strict=True)],
        abs=0.01,
    )


def test_a_dry_run_refuses_as_the_run_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: 7b\nmemory: {gpu_gib: 40}\n")
    assert "must hold" in ended(capsys, "--config", str(file), "--dry-run")
    file.write_text('extends: smoke\nalgorithm: {advantage: "planned_own:Estimator"}\n')
    for status, said in ((2, "algorithm.advantage must name a module that can be imported"), (0, "plan of smoke")):
        assert said in ended(capsys, "--config", str(file), "--dry-run", status=status)
        (tmp_path / "planned_own.py").touch()  # found, and not imported
    yaml = pytest.importorskip("yaml", reason="the extra `train` is not installed")
    preset: Preset = dataclasses.replace(MINI, rounds=6)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"seed": 4, "preset": preset.to_dict()}))
    shown = ended(capsys, "--resume", str(tmp_path), "--rounds", "9", "--dry-run", status=0)
    assert shown.strip() == plan_of(dataclasses.replace(preset, rounds=9))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"seed": 4, "engine": "ray", "preset": preset.to_dict()}))
    shown = ended(capsys, "--resume", str(tmp_path), "--ray-address", "auto", "--dry-run", status=0)
    assert shown.strip() == plan_of(preset)
