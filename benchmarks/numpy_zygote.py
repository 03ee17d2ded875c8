"""What `packages=("numpy",)` costs: milliseconds a job and memory of a sandbox process, with and without.

    python benchmarks/numpy_zygote.py [--jobs 400]

Jobs of the two kinds alternate in blocks, so that other load on the machine meets both. The job itself is empty but for
one call. Memory is that of the zygote: proportional set size, which shares pages with whoever else maps them.
"""

from __future__ import annotations

import argparse
import statistics
import time

from codea1_env.extras import for_script
from codea1_env.terminal import Parser

with for_script("dev"):
    import psutil

    from codea1_env.sandbox import CallsJob, LocalSandbox

SOURCE = "def f(x):\n    return x\n"


def job(packages: tuple[str, ...], source: str = SOURCE) -> CallsJob:
    return CallsJob(source, "f", (b"[[1],[]]",), packages=packages)


def zygote_mb(packages: tuple[str, ...]) -> tuple[float, float]:
    """MiB of resident and of proportional memory of a warm zygote: the child of its guard."""
    with LocalSandbox() as sandbox:
        sandbox.run([job(packages)] * 20)
        (guard,) = psutil.Process().children()
        (zygote,) = guard.children()
        memory = zygote.memory_full_info()
        return memory.rss / (1 << 20), memory.pss / (1 << 20)


def main() -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=400, help="jobs of each kind (default: 400)")
    options = parser.parse_args()
    kinds = {
        "without": job(()),
        "with numpy, not used": job(("numpy",)),
        "with numpy, imported": job(("numpy",), "import numpy as np\ndef f(x):\n    return np.arange(9).sum()\n"),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    with LocalSandbox() as sandbox:
        for each in kinds.values():
            sandbox.run([each] * 20)
        for _ in range(max(1, options.jobs // 20)):
            for name, each in kinds.items():
                began = time.perf_counter()
                sandbox.run([each] * 20)
                taken[name].append((time.perf_counter() - began) * 1000 / 20)
    for name, blocks in taken.items():
        print(f"{name:24} {statistics.median(blocks):.2f} ms a job (median of {len(blocks)} blocks of 20)")
    for packages in ((), ("numpy",)):
        resident, proportional = zygote_mb(packages)
        print(f"zygote {packages or 'plain'}: {resident:.0f} MiB resident, {proportional:.0f} MiB proportional")
        began = time.perf_counter()
        with LocalSandbox() as sandbox:
            sandbox.run([job(packages)])
            print(f"  starts and runs its first job in {1000 * (time.perf_counter() - began):.0f} ms")


if __name__ == "__main__":
    main()
