"""Builds what would be released, twice, and tries the wheel where nothing else is installed: `make release-check`.

    python tests/release/check.py [--keep FOLDER] [--ends]

1. The commit that is checked out is exported and built, in two folders, under two umasks; sdist and wheel must have the
   same bytes both times. Times in them are the commit's (SOURCE_DATE_EPOCH). Its uv.lock must be as uv would write it.
2. Both hold what they must, and no more: names, version, licence and the Python that they ask for.
3. The wheel goes into new virtual environments outside the tree, by pip and by uv, from binary packages only: no
   compiler is needed. `--ends`: on the oldest and the newest Python of this machine that the package supports; else on
   the one that runs this.
4. `smoke.py` runs there, with the examples and the quick start of the sdist; then mypy, in another environment, reads
   the installed types.

Needs git and a package index. What is not committed is not built.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
UMASKS = (0o022, 0o077)
MINORS = range(11, 14)
"""Of the Pythons that the package supports, 3.11 to 3.13."""
ALWAYS = {"LICENSE", "PKG-INFO", "README.md", "codea1_env", "pyproject.toml"}
"""In the sdist beside what pyproject.toml includes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy sdist and wheel there (default: not kept)")
    parser.add_argument("--ends", action="store_true", help="on the oldest and the newest Python (default: on this)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codea1-release-") as folder:
        scratch = Path(folder)
        builder = scratch / "builder" / "bin" / "python"
        venv.create(scratch / "builder", with_pip=True)
        install(builder, builder, "build", "mypy", "uv")
        built = [build(builder, scratch / f"tree{umask:03o}", umask) for umask in UMASKS]
        run(builder.parent / "uv", "lock", "--check", "--quiet", cwd=scratch / f"tree{UMASKS[0]:03o}")
        sdist, wheel = same_bytes(*built)
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch / "sdist", filter="data")
        (tree,) = (scratch / "sdist").iterdir()
        holds_what_it_must(tree, wheel)
        for number, python in enumerate(ends() if options.ends else [Path(sys.executable)]):
            clean = scratch / f"clean{number}" / "bin" / "python"
            run(python, "-m", "venv", "--without-pip", str(clean.parents[1]), cwd=scratch)  # the package and no more
            install(builder, clean, "--only-binary", ":all:", str(wheel))
            run(clean, "-I", str(tree / "tests/release/smoke.py"), str(tree), cwd=outside(scratch))
            run(builder, "-I", "-m", "mypy", "--strict", "--python-executable", str(clean), "--cache-dir", os.devnull,
                str(tree / "tests/release/typed_client.py"), cwd=outside(scratch))  # fmt: skip
            by_uv(builder, python, wheel, scratch / f"uv{number}")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for path in (sdist, wheel):
                shutil.copy2(path, options.keep)


def ends() -> list[Path]:
    """The oldest and the newest supported Python of this machine: on PATH, of pyenv, or what runs this."""
    found: dict[int, Path] = {sys.version_info.minor: Path(sys.executable)}
    for minor in MINORS:
        places = [Path(each) for each in (shutil.which(f"python3.{minor}"),) if each]
        places += sorted((Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python3"))
        for place in places:
            if (
                minor not in found
                and not subprocess.run([place, "-c", ""], check=False, capture_output=True).returncode
            ):
                found[minor] = place
    supported = sorted(minor for minor in found if minor in MINORS)
    return [found[minor] for minor in dict.fromkeys((supported[0], supported[-1]))]


def by_uv(builder: Path, python: Path, wheel: Path, folder: Path) -> None:
    """The same wheel by uv, which resolves otherwise."""
    uv = str(builder.parent / "uv")
    pinned = ["-c", str(ROOT / "constraints.txt"), "--only-binary", ":all:", "--quiet"]
    run(Path(uv), "venv", "--quiet", "--python", str(python), str(folder), cwd=folder.parent)
    run(Path(uv), "pip", "install", *pinned, "--python", str(folder / "bin/python"), str(wheel), cwd=folder.parent)
    run(folder / "bin" / "codea1", "tournament", "--coder", "oracle", "--tester", "golden", "--questions", "2",
        cwd=outside(folder.parent))  # fmt: skip


def holds_what_it_must(tree: Path, wheel: Path) -> None:
    """What is in both archives, and what they say of themselves."""
    listed = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["flit"]["sdist"]["include"]
    must = ALWAYS | {name.rstrip("/") for name in listed}
    names = {path.name for path in tree.iterdir()}
    if names != must:
        raise SystemExit(f"the sdist must hold {sorted(must)}, got more or less: {sorted(names ^ must)}")
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.split("/")[0] for name in archive.namelist()}
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(metadata).decode("utf-8"))
        version = told["Version"]
    if folders != {"codea1_env", f"codea1_env-{version}.dist-info"}:
        raise SystemExit(f"the wheel must hold the package and nothing else, got {sorted(folders)}")
    citation = (tree / "CITATION.cff").read_text(encoding="utf-8")
    for name, got, wanted in (
        ("Name", told["Name"], "codea1-env"),
        ("Requires-Python", told["Requires-Python"], f">=3.{MINORS[0]}"),
        ("License-Expression", told["License-Expression"], "Apache-2.0"),
        ("the description's form", told["Description-Content-Type"], "text/markdown"),
        ("version of CITATION.cff", f"\nversion: {version}\n" in citation, True),
        ("version of CHANGELOG.md", f"\n## {version}" in (tree / "CHANGELOG.md").read_text(encoding="utf-8"), True),
    ):
        if got != wanted:
            raise SystemExit(f"{name} must be {wanted}, got {got}")
    print(f"works: contents and metadata of {version}", flush=True)


def install(builder: Path, python: Path, *requirements: str) -> None:
    """Put packages into the environment of an interpreter, with the builder's pip and the versions tried together."""
    run(builder, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
        "-c", str(ROOT / "constraints.txt"), *requirements, cwd=builder.parent)  # fmt: skip


def build(python: Path, tree: Path, umask: int) -> Path:
    """Export the commit and build sdist and wheel from it; the folder that they are in."""
    before = os.umask(umask)
    try:
        tree.mkdir()
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=tree, input=archive, check=True)
        moment = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        run(python, "-m", "build", "--outdir", str(tree / "dist"), str(tree), cwd=tree, epoch=moment.strip())
    finally:
        os.umask(before)
    return tree / "dist"


def same_bytes(one: Path, other: Path) -> tuple[Path, Path]:
    """Sdist and wheel of the first folder, after a comparison with those of the second."""
    names = sorted(path.name for path in one.iterdir())
    if names != sorted(path.name for path in other.iterdir()) or len(names) != 2:
        raise SystemExit(f"both builds must make one sdist and one wheel, got {names} first")
    for name in names:
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (one, other)]
        if digests[0] != digests[1]:
            raise SystemExit(f"two builds of {name} must have the same bytes, got {digests[0]} and {digests[1]}")
        print(f"{digests[0]}  {name}", flush=True)
    (sdist,), (wheel,) = one.glob("*.tar.gz"), one.glob("*-py3-none-any.whl")
    return sdist, wheel


def outside(scratch: Path) -> Path:
    """An empty folder: what is imported there is what is installed."""
    place = scratch / "outside"
    place.mkdir(exist_ok=True)
    return place


def run(python: Path, *arguments: str, cwd: Path, epoch: str = "") -> None:
    """Run without what this process's environment says about Python. A failure ends the check."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    if epoch:
        kept["SOURCE_DATE_EPOCH"] = epoch
    done = subprocess.run([python, *arguments], cwd=cwd, env=kept, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} must succeed, got exit code {done.returncode}:\n"
                         f"{done.stdout}{done.stderr}")  # fmt: skip
    print(done.stdout, end="", flush=True)


if __name__ == "__main__":
    main()
