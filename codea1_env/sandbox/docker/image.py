"""Makes the image that the Docker backend runs: from this machine's package archive, or from a registry's Python image.

Two parts: a base with an interpreter (slow, kept under its own name) and, on top, the few files that run inside (fast;
made again when they change). Does not push anything anywhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from codea1_env.errors import SandboxError
from codea1_env.sandbox.docker.engine import PACKAGES_LABEL, SOURCES_LABEL, connect, require_docker
from codea1_env.sandbox.worlds import PACKAGES, installed, metadata_places, package_places
from codea1_env.sandbox.zygotes import site_directories

DEFAULT_IMAGE = "codea1-sandbox:latest"
BASE_IMAGE = "codea1-sandbox-base:bookworm"

_PACKAGE = Path(__file__).parents[2]
_OUTSIDE = {"doctor.py", "self_test.py"}
"""The sandbox's modules that stay on the trusted side, as this directory does."""
_NEEDED = ("checks.py", "class_paths.py", "closing.py", "errors.py", "extras.py")
"""The modules beside the sandbox that its own import."""
_LEFT_OUT = ("./dev/", "./proc/", "./sys/", "./var/cache/", "./var/lib/apt/", "./usr/share/doc/", "./usr/share/man/",
             "./usr/share/locale/")  # fmt: skip
_BUILD_TIMEOUT_S = 1800
_PYTHON = (3, 11)
"""Of the image, whichever base it has."""


def sources() -> dict[str, bytes]:
    """The files that run inside, by their path in the image: the sandbox without its Docker side, and what it needs.

    No `codea1_env/__init__.py`: inside, the package is only a namespace and imports nothing but the standard library.
    """
    sandbox = _PACKAGE / "sandbox"
    inside = [path for path in sandbox.glob("*.py") if path.name not in _OUTSIDE] + [*(sandbox / "inside").glob("*.py")]
    chosen = sorted([*(_PACKAGE / name for name in _NEEDED), *inside])
    return {path.relative_to(_PACKAGE.parent).as_posix(): path.read_bytes() for path in chosen}


def sources_digest() -> str:
    """Changes with every change of what runs inside."""
    digest = hashlib.sha256()
    for path, content in sources().items():
        digest.update(f"{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def build_image(
    tag: str = DEFAULT_IMAGE,
    *,
    from_dockerfile: bool = False,
    packages: Sequence[str] | None = None,
    for_scripts: bool = False,
    say: Callable[[str], None] = print,
) -> str:
    """Make the image `tag`; its id. Raises SandboxError where something is missing, saying what.

    `from_dockerfile` takes its base from a registry; else it is made with debootstrap where it is not there yet.
    `packages`, of `worlds.PACKAGES`, are copied from this machine: its Python and the image's must be of one version.
    None stands for those that are installed here, and for no package where the versions differ. `for_scripts` copies
    all that is installed here, which programs beside test scripts may import.
    """
    client = connect()
    if packages is None:
        packages = _installed_here(say)
    places = package_places(packages)
    directories = [*(path for paths in places.values() for path in paths), *metadata_places(places)]
    arguments: dict[str, str] = {}
    if not from_dockerfile:
        if not client.images(name=BASE_IMAGE):
            _make_base(client, say)
        arguments["BASE"] = BASE_IMAGE
    say(f"building {tag}")
    fix = (
        "the registry's image must be within reach (without a registry leave --from-dockerfile), and packages must be "
        "for the image's version of Python"
    )
    with _context(packages, directories, site_directories() if for_scripts else []) as context:
        try:
            for step in client.build(
                fileobj=context,
                custom_context=True,
                tag=tag,
                buildargs=arguments,
                labels={SOURCES_LABEL: sources_digest(), PACKAGES_LABEL: ",".join(packages)},
                network_mode="none",
                rm=True,
                decode=True,
            ):
                _refuse_failed(step, fix)
            return str(client.inspect_image(tag)["Id"])
        except require_docker().errors.DockerException as error:
            raise SandboxError(f"the image must build, got: {error}") from error


def _installed_here(say: Callable[[str], None]) -> tuple[str, ...]:
    if sys.version_info[:2] != _PYTHON:
        here, there = (".".join(map(str, version)) for version in (sys.version_info[:2], _PYTHON))
        say(f"no packages for programs: they are copied from here, where Python is {here}; the image has {there}")
        return ()
    packages = installed(PACKAGES)
    say(f"packages for programs, as installed here: {', '.join(packages) or 'none'}")
    return packages


def _refuse_failed(step: Any, fix: str) -> None:
    if isinstance(step, dict) and step.get("error"):
        raise SandboxError(f"the image must build, got: {step['error']}; {fix}")


_AS_INSTALLED = (
    "import os, sys, sysconfig; place = sysconfig.get_path('purelib'); "
    "os.makedirs(place, exist_ok=True); os.rmdir(place); os.symlink('/opt/codea1-site', place); "
    "sys.path.append(place); import {}"
)
"""Makes what was copied the image's installed packages, which must be none, and imports some of them."""
_TRIED = ("numpy", "pandas", "matplotlib")


def _context(packages: Sequence[str], directories: Sequence[str], site: Sequence[str]) -> IO[bytes]:
    """What the engine builds from: the Dockerfile and the files inside, as a tar archive. `site`: where all that is
    installed here is."""
    dockerfile = (Path(__file__).parent / "Dockerfile").read_bytes()
    if packages:  # the import at once: a package for another Python is found out here, not by a job
        check = f"import sys; sys.path.append('/opt/codea1'); import {', '.join(packages)}"
        dockerfile += f'COPY packages /opt/codea1\nRUN ["python3", "-I", "-S", "-c", "{check}"]\n'.encode()
    if site:
        check = _AS_INSTALLED.format(", ".join(name for name in _TRIED if find_spec(name)) or "site")
        dockerfile += b"USER 0:0\nCOPY site /opt/codea1-site\n"
        dockerfile += f'RUN ["python3", "-I", "-S", "-c", "{check}"]\nUSER 65534:65534\n'.encode()
    files = {"Dockerfile": dockerfile, **sources()}
    archive: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for directory in directories:
            tar.add(directory, f"packages/{Path(directory).name}", filter=_without_tests)
        for directory in site:
            tar.add(directory, "site", filter=_readable)
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    archive.seek(0)
    return archive


def _without_tests(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """As `_readable`, and without what only the package's own developers run."""
    return None if Path(entry.name).name == "tests" else _readable(entry)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """By whoever runs in the image. With what Python compiled here: a container cannot write, and each of its processes
    would compile again."""
    entry.uid = entry.gid = 0
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry


def _make_base(client: Any, say: Callable[[str], None]) -> None:
    """Debian's interpreter and what it needs, unpacked by debootstrap, imported as an image."""
    for program in ("debootstrap", "unshare"):
        if shutil.which(program) is None:
            raise SandboxError(
                f"{program} must be installed to make an image without a registry, got no such program; "
                f"install it (apt-get install {program}), or use --from-dockerfile where a registry is within reach"
            )
    if os.geteuid() != 0:
        raise SandboxError(
            f"debootstrap must run as root, got user {os.geteuid()}; "
            "run it as root, or use --from-dockerfile where a registry is within reach"
        )
    with tempfile.TemporaryDirectory(prefix="codea1-base-") as directory:
        root, archive = Path(directory, "root"), Path(directory, "base.tar")
        say("unpacking a Debian base with debootstrap (about a minute)")
        command = ["debootstrap", "--variant=minbase", "--include=python3", "bookworm", str(root)]
        try:  # in a mount namespace of its own: whatever it mounts is gone with it, before the directory is deleted
            done = subprocess.run(
                ["unshare", "--mount", *command], capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise SandboxError(f"debootstrap must end within {_BUILD_TIMEOUT_S} s, got no end") from None
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-500:]
            raise SandboxError(f"debootstrap must succeed, got exit code {done.returncode}: {said}")
        with tarfile.open(archive, "w") as tar:
            tar.add(root, ".", filter=_kept)
        say(f"importing {BASE_IMAGE}")
        name, _, version = BASE_IMAGE.partition(":")
        answer = client.import_image_from_file(str(archive), repository=name, tag=version)
    for line in answer.splitlines():
        _refuse_failed(json.loads(line), "see the engine's log")


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without what nothing inside needs, and without set-user-id bits."""
    if entry.name.startswith(_LEFT_OUT):
        return None
    entry.mode &= 0o1777
    return entry
