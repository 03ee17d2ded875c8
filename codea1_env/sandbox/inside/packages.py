"""Third-party packages for candidates: imported once into a zygote of their own, before it isolates itself.

Does not make a package safe or its results reproducible beyond its global random state, which the hash seed seeds. The
package's files are read by the zygote as trusted code. No directory joins `sys.path`: a finder knows the places of
these packages and of no others, so what is installed beside them cannot be imported.
"""

import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Mapping, Sequence

# A library that starts a thread here would leave its children with a lock that nobody releases; they may start none.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1")
_START_THREADS = ("pyarrow",)
"""What others import where it is installed, and what starts a thread when it is imported."""
_SUBMODULES = {
    "numpy": "numpy.random numpy.linalg numpy.fft numpy.polynomial numpy.ma numpy.testing numpy.ctypeslib",
    "scipy": "scipy.special scipy.linalg scipy.optimize scipy.stats scipy.sparse.linalg scipy.sparse.csgraph "
    "scipy.spatial.distance scipy.integrate scipy.interpolate scipy.signal scipy.ndimage scipy.fft "
    "scipy.cluster.hierarchy",
    "networkx": "scipy.linalg scipy.sparse.linalg",
    "sklearn": "sklearn.cluster sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.linear_model "
    "sklearn.feature_extraction.text sklearn.metrics sklearn.model_selection sklearn.naive_bayes sklearn.neighbors "
    "sklearn.neural_network sklearn.pipeline sklearn.preprocessing sklearn.svm sklearn.tree",
    "statsmodels": "statsmodels.api statsmodels.formula.api",
    "matplotlib": "matplotlib.pyplot mpl_toolkits.mplot3d",
    "tqdm": "tqdm.auto tqdm.contrib.concurrent",
    "dateutil": "dateutil.parser dateutil.relativedelta dateutil.rrule dateutil.tz dateutil.easter",
}
"""What programs use of those that would else be imported in their own time: once here rather than in every child."""


class Finder:
    """Finds the modules of `places` ({name: real paths, the importable one first})."""

    def __init__(self, places: Mapping[str, Sequence[str]]) -> None:
        self.places = {name: paths[0] for name, paths in places.items()}

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "types.ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        """Of a top-level module that it knows; a package finds its submodules itself."""
        place = self.places.get(name)
        if path is not None or place is None:
            return None
        if os.path.isdir(place):
            file = os.path.join(place, "__init__.py")
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[place])
        return importlib.util.spec_from_file_location(name, place)


def preload(
    packages: Sequence[str],
    places: Mapping[str, Sequence[str]],
    versions: Mapping[str, str],
    site: Sequence[str],
    hash_seed: int,
) -> "tuple[int, dict[str, str]]":
    """Import `packages`: MiB of address space that they take, and {package that cannot be imported here: why}.

    They are found at `places` with what they need; `versions`: of what they ask for while they are imported. Or, where
    there are directories `site`, in these, where everything may be imported: for test scripts alone, whose outcomes are
    unsealed whatever they can import. Raises RuntimeError where an import leaves a thread behind.
    """
    if not packages and not site:
        return 0, {}
    if site:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        importlib.import_module("script_tests")  # with unittest, which others need not carry
        sys.path.pop(0)
        sys.path += site
        os.environ["MPLBACKEND"] = "Agg"
    else:
        importlib.import_module("importlib.metadata")  # it brings along much that other zygotes do without
    before = _mapped_bytes()
    os.environ.update(_ONE_THREAD)
    broken = _imported_from_site(packages) if site else _imported(packages, places, versions)
    _prepare(hash_seed)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:  # it would be none of this process's children, and leave them its locks
        raise RuntimeError(f"the packages {', '.join(packages)} must start no thread, got {threads - 1}")
    return (_mapped_bytes() - before >> 20) + 1, broken


def _imported(
    packages: Sequence[str], places: Mapping[str, Sequence[str]], versions: Mapping[str, str]
) -> "dict[str, str]":
    finder = Finder(places)
    sys.meta_path.append(finder)
    version = importlib.metadata.version
    importlib.metadata.version = lambda distribution_name: versions[distribution_name]
    broken = {name: why for name in packages if (why := _why_broken(name))}
    importlib.metadata.version = version
    for name in broken:
        finder.places.pop(name, None)  # from now on there is no such module
    for name in places:
        _why_broken(name)  # what they only import when they are called
    return broken


def _imported_from_site(packages: Sequence[str]) -> "dict[str, str]":
    """One that is not there is not broken."""
    sys.modules.update(dict.fromkeys(_START_THREADS))  # type: ignore[arg-type]  # their import fails: pandas does without
    broken = {name: why for name in packages if (why := _why_broken(name)) and not why.startswith("ModuleNotFound")}
    for name in _START_THREADS:
        del sys.modules[name]
    return broken


def _why_broken(name: str) -> str:
    """Import a package and what programs use of it; "" where that does."""
    try:
        importlib.import_module(name)
        for submodule in _SUBMODULES.get(name, "").split():
            try:  # noqa: SIM105  (contextlib would be one more module in every zygote)
                importlib.import_module(submodule)
            except ImportError:  # another version may have none of that name
                pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _prepare(hash_seed: int) -> None:
    """What packages would do at a program's first call."""
    if "numpy" in sys.modules:
        _prepare_numpy(sys.modules["numpy"], hash_seed)
    controller = getattr(sys.modules.get("threadpoolctl"), "ThreadpoolController", None)
    if controller is not None:  # it would look for libraries with threads in /proc, and they have one here
        controller._load_libraries = lambda self: None
    context = sys.modules.get("joblib.externals.loky.backend.context")
    if context is not None:  # it would look for a limit of processors in /sys
        vars(context)["_cpu_count_cgroup"] = lambda count: count


def _prepare_numpy(numpy: types.ModuleType, hash_seed: int) -> None:
    numpy.random.seed(hash_seed)
    square = numpy.ones((64, 64))
    numpy.linalg.svd(square @ square)  # BLAS allots its buffers at the first call: once here, not in every child
    if "scipy.linalg" in sys.modules:  # which has a BLAS of its own
        sys.modules["scipy.linalg"].svd(square)
    for name in numpy.__all__:  # some are imported when they are asked for, as all are by `from numpy import *`
        getattr(numpy, name, None)


def _mapped_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
