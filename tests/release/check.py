"""Builds what would be released, twice, and tries the wheel where nothing else is installed: `make release-check`.

    python tests/release/check.py [--keep FOLDER]

1. The commit that is checked out is exported and built, in two folders, under two umasks; sdist and wheel must have the
   same bytes both times. Times in them are the commit's (SOURCE_DATE_EPOCH).
2. The wheel goes into a new virtual environment outside the tree, from binary packages only: no compiler is needed.
3. `smoke.py` runs there, with the examples of the sdist; then mypy, in another environment, reads the installed types.

Needs git and a package index, and the Python that runs it is the one that is tried. What is not committed is not built.
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
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
UMASKS = (0o022, 0o077)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="copy sdist and wheel there (default: not kept)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codea1-release-") as folder:
        scratch = Path(folder)
        builder = scratch / "builder" / "bin" / "python"
        venv.create(scratch / "builder", with_pip=True)
        install(builder, builder, "build", "mypy")
        built = [build(builder, scratch / f"tree{umask:03o}", umask) for umask in UMASKS]
        sdist, wheel = same_bytes(*built)
        clean = scratch / "clean" / "bin" / "python"
        venv.create(scratch / "clean")  # without pip: nothing but the package and what it requires
        install(builder, clean, "--only-binary", ":all:", str(wheel))
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch / "sdist", filter="data")
        (tree,) = (scratch / "sdist").iterdir()
        run(clean, "-I", str(tree / "tests/release/smoke.py"), str(tree), cwd=outside(scratch))
        run(builder, "-I", "-m", "mypy", "--strict", "--python-executable", str(clean), "--cache-dir", os.devnull,
            str(tree / "tests/release/typed_client.py"), cwd=outside(scratch))  # fmt: skip
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for path in (sdist, wheel):
                shutil.copy2(path, options.keep)
    print(f"the release is as it should be on Python {sys.version.split()[0]}")


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
