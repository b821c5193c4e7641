# SPDX-License-Identifier: BSD-3-Clause
"""Put faults into a copy of the package, one at a time, and see whether a test notices.

`make mutants`, or `python -m mutants.run store cli` with `tests` on the path. A file `*.toml` here
is an area: its mutants, each a text of one source file and what stands there instead, and the tests
that match. A mutant that no test can notice says why (`equivalent`), and is not run.

A mutant in Python is a change of the copy. For one in Cython or C, the modules that have it in
them are built from a copy of the sources. Tests stop at the first failure; one that takes too long
has noticed, too.
"""

import argparse
import importlib
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SOURCE = ROOT / "src" / "adiabat"
#: Of all mutants that are not equivalent, how many must be noticed.
WANTED = 0.9
#: Processor time of one mutant's tests, and a limit for those that wait for ever.
SECONDS = 300
PATIENCE = 1800.0
#: A mutant that allocates whatever it is asked for must not take the machine with it.
MEMORY = 8 << 30
OPTIONS = ("-q", "-x", "--full", "-W", "ignore::pytest.PytestAssertRewriteWarning")
#: What takes long to import, and is no part of the package.
BEFOREHAND = (
    "hypothesis", "joblib", "pandas", "pyarrow.csv", "pyarrow.feather", "pyarrow.parquet",
    "rich.console", "scipy.sparse", "sklearn.datasets", "sklearn.metrics", "sklearn.svm",
    "sklearn.utils.estimator_checks", "sqlalchemy", "typer.testing",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One fault."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def compiled(self):
        return not self.file.endswith(".py")

    def applied(self, text):
        """The file with the fault in it."""
        assert text.count(self.old) == 1, (
            f"{self.name}: {text.count(self.old)} places in {self.file}"
        )
        return text.replace(self.old, self.new)


def read(area):
    """The mutants of an area."""
    found = tomllib.loads((HERE / f"{area}.toml").read_text("utf-8"))
    tests = tuple(found.get("tests", ()))
    mutants = []
    for entry in found["mutant"]:
        own = tuple(entry.pop("tests", tests))
        mutants.append(Mutant(area=area, tests=own, **entry))
    return mutants


def areas():
    """All areas, by name."""
    return sorted(path.stem for path in HERE.glob("*.toml"))


def run_tests(package, tests):
    """Whether they pass, those that are not slow first, and the name of the first that fails."""
    for marked in ("not slow", "slow"):
        passed, said = _run_marked(package, tests, marked)
        if not passed:
            return False, said
    return True, ""


def _run_marked(package, tests, marked):
    """The same, in a child that has all but the package imported already."""
    with tempfile.TemporaryFile("w+") as output:
        child = os.fork()
        if child == 0:
            code = pytest.ExitCode.INTERNAL_ERROR
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 10))
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                os.environ["PYTHONPATH"] = str(package.parent)
                sys.path.insert(0, str(package.parent))
                code = int(pytest.main([*OPTIONS, "-m", marked, *tests]))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = _ended(child)
        output.seek(0)
        lines = output.read().splitlines()
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return True, ""
    if code in (None, -signal.SIGXCPU):
        return False, "took too long"
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR):
        raise RuntimeError("\n".join(lines[-20:]))
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return False, failed[0][:150] if failed else f"ended with {code}"


def _ended(child):
    """The exit code of a child; None if it had to be killed."""
    deadline = time.monotonic() + PATIENCE
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


class Copy:
    """A copy of the installed package, and of its sources as soon as something must be built."""

    def __init__(self, folder):
        self.package = folder / "installed" / "adiabat"
        self._tree, self._build = folder / "tree", folder / "build"
        (installed,) = importlib.util.find_spec("adiabat").submodule_search_locations
        self._installed = Path(installed)
        shutil.copytree(installed, self.package)

    def put(self, mutant):
        """Make the fault; returns what undoes it."""
        return self._put_compiled(mutant) if mutant.compiled else self._put_python(mutant)

    def _put_python(self, mutant):
        path = self.package / mutant.file
        sound = path.read_text("utf-8")

        def write(text):
            path.write_text(text, "utf-8")
            for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                cached.unlink()

        write(mutant.applied(sound))
        return lambda: write(sound)

    def _put_compiled(self, mutant):
        if not self._build.exists():
            self._configure()
        path = self._tree / "src" / "adiabat" / mutant.file
        sound = path.read_text("utf-8")
        path.write_text(mutant.applied(sound), "utf-8")

        def undo():
            path.write_text(sound, "utf-8")
            self._copy_modules(self._installed / "_core")

        try:
            self._install(Path(mutant.file))
        except BaseException:
            path.write_text(sound, "utf-8")
            raise
        return undo

    def _configure(self):
        shutil.copytree(ROOT / "src", self._tree / "src")
        for name in ("meson.build", "meson.options", "pyproject.toml"):
            shutil.copy(ROOT / name, self._tree)
        self._call("meson", "setup", str(self._build), str(self._tree), "--buildtype=release")

    def _install(self, changed):
        """Build and copy the modules that a file is compiled into."""
        built = self._build / "src" / "adiabat" / "_core"
        for path in built.glob("*.so"):  # of a mutant before
            path.unlink()
        files = self._files_with(changed.name)
        targets = []
        if not any(name.endswith(".pxd") for name in files):  # of those, all modules are built
            modules = {"simd" if name == "simd_level.c" else Path(name).stem for name in files}
            for path in (self._installed / "_core").glob("*.so"):
                if path.name.partition(".")[0] in modules:
                    targets.append(str((built / path.name).relative_to(self._build)))
        self._call("ninja", "-C", str(self._build), *targets)
        self._copy_modules(built)

    def _files_with(self, changed):
        """Names of a file and of those that include it, directly or not."""
        core = self._tree / "src" / "adiabat" / "_core"
        texts = {path.name: path.read_text("utf-8") for path in core.glob("*.[chp]*")}
        found, before = {changed}, set()
        while found != before:
            before = set(found)
            found |= {name for name in texts if any(f'"{part}"' in texts[name] for part in before)}
        return found

    def _copy_modules(self, folder):
        for path in folder.glob("*.so"):
            shutil.copy2(path, self.package / "_core" / path.name)

    def _call(self, *command):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        found = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        if found.returncode:
            raise RuntimeError(f"{command[0]} failed\n{(found.stdout + found.stderr)[-2000:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chosen", nargs="*", help="areas, or parts of mutants' names; all if none")
    parser.add_argument("--no-baseline", action="store_true", help="do not run sound code first")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    known = areas()
    parts = [chosen for chosen in arguments.chosen if chosen not in known]
    mutants = [
        mutant
        for area in known
        for mutant in read(area)
        if not arguments.chosen
        or area in arguments.chosen
        or any(part in mutant.name for part in parts)
    ]
    running = [mutant for mutant in mutants if not mutant.equivalent]
    if arguments.list:
        for mutant in mutants:
            print(f"{mutant.area:16s} {mutant.name}{' (equivalent)' if mutant.equivalent else ''}")
        return
    os.chdir(ROOT)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in BEFOREHAND:
        importlib.import_module(name)
    unnoticed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        if not arguments.no_baseline:
            tests = sorted({test for mutant in running for test in mutant.tests})
            passed, said = run_tests(copy.package, tests)
            if not passed:
                sys.exit(f"the sound package fails a test: {said}")
        for number, mutant in enumerate(running, 1):
            started = time.monotonic()
            undo = copy.put(mutant)
            try:
                passed, said = run_tests(copy.package, mutant.tests)
            finally:
                undo()
            spent = time.monotonic() - started
            verdict = "NOT NOTICED" if passed else f"noticed: {said}"
            print(f"{number}/{len(running)} {mutant.area}: {mutant.name} ({spent:.0f} s) {verdict}",
                  flush=True)  # fmt: skip
            if passed:
                unnoticed.append(mutant)
    noticed = len(running) - len(unnoticed)
    print(f"{noticed} of {len(running)} noticed; {len(mutants) - len(running)} equivalent")
    for mutant in unnoticed:
        print(f"  not noticed: {mutant.area}: {mutant.name}")
    sys.exit(0 if noticed >= WANTED * len(running) else 1)


if __name__ == "__main__":
    main()
