"""`codea1 doctor`: what it says is what the sandbox does, and its attacks are real ones."""

import dataclasses
import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from codea1_env.cli import main
from codea1_env.errors import SandboxUnsafe
from codea1_env.sandbox import LocalSandbox, self_test
from codea1_env.sandbox.doctor import as_json, as_text, examine, landlock_gives
from codea1_env.sandbox.self_test import run_attacks

LAYERS = [
    "namespaces",
    "root",
    "capabilities",
    "no_new_privileges",
    "landlock",
    "rlimits",
    "hidden_memory",
    "seccomp",
    "scratch",
    "processes",
]
NEEDS_ISOLATION = {
    "read a file",
    "read the environment",
    "use the network",
    "start a process",
    "kill the parent",
    "write a file",
}
NEEDS_DATA_ONLY = {"leave with exit code 0", "forge a record", "never end", "exhaust memory", "remember"}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack that never ends is ended soon."""
    monkeypatch.setattr(self_test, "_LIMITS", dataclasses.replace(self_test._LIMITS, time_limit_s=0.1))


def test_the_table_is_what_the_sandbox_reports_and_no_attack_succeeds() -> None:
    report = examine(["local"])
    (local,) = report.backends
    with LocalSandbox() as sandbox:
        layers = sandbox.guarantees
    assert [guarantee.name for guarantee in local.guarantees] == LAYERS
    assert {guarantee.name: guarantee.active or guarantee.why for guarantee in local.guarantees} == dict(layers)
    assert {attack.name for attack in local.attacks} == NEEDS_ISOLATION | NEEDS_DATA_ONLY
    assert [attack for attack in local.attacks if attack.succeeded] == []
    assert local.safe
    assert report.safe


def test_without_isolation_the_attacks_succeed_and_forging_still_does_not() -> None:
    without = ("namespaces", "landlock", "capabilities", "hidden_memory", "seccomp")
    with LocalSandbox(without=without, waive=("seccomp", "filesystem")) as sandbox:
        results = run_attacks(sandbox)
    assert {attack.name for attack in results if attack.succeeded} == NEEDS_ISOLATION
    (forged,) = [attack for attack in results if attack.name == "forge a record"]
    assert "forged" in forged.detail  # it reached the region: what it wrote came back, as a value


@pytest.mark.parametrize("without", [[], *([layer] for layer in LAYERS), ["namespaces", "landlock"]], ids="-".join)
def test_unsafe_is_said_exactly_where_the_sandbox_refuses(without: list[str]) -> None:
    try:
        with LocalSandbox(without=without) as sandbox:
            sandbox.run([])
            assert sandbox.guarantees
        refused = ""
    except SandboxUnsafe as error:
        refused = str(error)
    report = examine(["local"], without)
    (local,) = report.backends
    assert (local.refusal or local.unavailable) == refused
    assert report.safe == (not refused)
    assert len(local.attacks) == (0 if refused else 11)
    for guarantee in local.guarantees:
        if guarantee.name in without and guarantee.required == "yes":
            assert refused


def test_a_missing_layer_is_named_with_its_reason_in_both_forms() -> None:
    report = examine(["local"], ["seccomp"])
    (seccomp,) = [g for g in report.backends[0].guarantees if g.name == "seccomp"]
    assert (seccomp.active, seccomp.why, seccomp.required) == (False, "switched off", "yes")
    text = as_text(report)
    assert "local: NOT SAFE" in text
    assert "switched off (required: yes)" in text
    assert "the default backend (local) is NOT SAFE" in text
    decoded = json.loads(as_json(report))
    assert decoded["safe"] is False
    assert decoded["backends"][0]["safe"] is False
    assert decoded["backends"][0]["refusal"]


def test_the_tables_fit_the_terminal() -> None:
    report = examine(["local", "docker"], ["seccomp"])
    usual = as_text(report)
    for columns in (40, 60, 79, 80, 100, 200):
        text = as_text(report, columns)
        assert max(map(len, text.splitlines())) <= columns
        assert "".join(text.split()) == "".join(usual.split())  # nothing is left out; long words are broken
    assert len(text.splitlines()) < len(usual.splitlines())


def test_the_command_asks_the_terminal_how_wide_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("codea1_env.cli.sandbox.columns_of", lambda stream: 60)
    main(["doctor", "--backend", "local"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_the_command_prints_every_known_backend_and_says_why_one_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--backend", "local", "--backend", "docker"]) == 0
    decoded = json.loads(capsys.readouterr().out)
    local, docker = decoded["backends"]
    assert decoded["safe"] is local["safe"] is True
    assert [guarantee["name"] for guarantee in local["guarantees"]] == LAYERS
    assert (docker["name"], docker["safe"]) == ("docker", bool(docker["attacks"]))
    assert docker["unavailable"] or docker["refusal"] or docker["attacks"]


def test_a_backend_that_was_not_looked_at_is_not_called_unsafe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    report = examine(["docker"])
    assert not report.safe
    assert "local" not in as_text(report)
    assert as_text(report).endswith("the backend docker is NOT SAFE on this machine")
    local = examine(["local"]).backends
    assert dataclasses.replace(report, backends=(*report.backends, *local)).safe, "the default one decides"
    assert as_text(dataclasses.replace(report, backends=(dataclasses.replace(local[0], name="docker"),))).endswith(
        "the backend docker is safe on this machine"
    )


def test_the_exit_code_is_one_where_the_only_backend_that_was_looked_at_is_not_safe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert main(["doctor", "--backend", "docker"]) == 1


def test_what_landlock_gives_grows_with_its_version() -> None:
    assert "not restricted" in landlock_gives(1)
    assert "no TCP bind" not in landlock_gives(3)
    assert "no TCP bind" in landlock_gives(4)
    assert "not restricted" not in landlock_gives(6)


def test_nothing_of_the_self_test_is_left_behind() -> None:
    before = set(os.environ), set(os.listdir("/proc/self/fd")), children()
    examine(["local"])
    assert (set(os.environ), set(os.listdir("/proc/self/fd")), children()) == before


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def as_nobody(*command: str) -> subprocess.CompletedProcess[str] | None:
    """The command run by an ordinary user with this process's import path; None where that user may not run it."""
    nobody = pwd.getpwnam("nobody")
    path = os.pathsep.join([str(Path(__file__).parents[1]), *(p for p in sys.path if p.endswith("-packages"))])
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    try:
        return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, **who)
    except (PermissionError, FileNotFoundError):
        return None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_an_ordinary_user_gets_the_same_answer() -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    usable = []
    for python in (sys.executable, f"/usr/bin/python{version}"):  # root's own interpreter may be out of others' reach
        tried = as_nobody(python, "-c", "import numpy, codea1_env.cli")
        if tried is not None and tried.returncode == 0:
            usable.append(python)
    if not usable:
        pytest.skip(f"an ordinary user may not run {sys.executable} or read what is installed there")
    done = as_nobody(usable[0], "-m", "codea1_env.cli", "doctor", "--json", "--backend", "local")
    assert done is not None
    decoded = json.loads(done.stdout)
    assert decoded["uid"] == pwd.getpwnam("nobody").pw_uid
    assert [attack for attack in decoded["backends"][0]["attacks"] if attack["succeeded"]] == []
    assert (done.returncode, decoded["safe"]) == (0, True)
