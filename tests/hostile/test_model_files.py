# SPDX-License-Identifier: BSD-3-Clause
"""Model files of strangers: what they declare is checked before it costs anything."""

import subprocess
import sys

import numpy as np
import pytest

import adiabat

from hostile.tampering import MODELS, resealed, saved

LIMIT = 1 << 20
ROOM = 600 << 20  # bytes of address space that a process with the library loaded may still take


def edited(manifest, where, value):
    """Set one field of a manifest, named by its path."""
    *above, last = where.split(".")
    for name in above:
        manifest = manifest[name]
    manifest[last] = value


def many_rows(manifest, arrays, n):
    """Say that a model with transformers has learned so many rows."""
    manifest["counts"].update(n=40 + n, n_heavy=40 + n)
    for name in arrays:
        if "_counts" in name:
            arrays[name] = arrays[name].copy()
            arrays[name][0] += n


BOMBS = {
    "width": ("lssvc", lambda m, a: m.update(width=50_000)),
    "width that the moments have not": ("lssvr", lambda m, a: m.update(width=10**9)),
    "targets": ("lssvc", lambda m, a: a.update(combine=np.zeros((10**6, 1)))),
    "features": ("lssvc", lambda m, a: m.update(n_features_in=3 * 10**7)),
    "features of random ones": ("lssvr", lambda m, a: m.update(n_features_in=3 * 10**9)),
    "components": (
        "lssvr", lambda m, a: edited(m, "feature_map.parameters.n_components", 10**8)),
    "degree of a map": (
        "lssvr poly", lambda m, a: edited(m, "feature_map.parameters.degree", 12)),
    "degree without end": (
        "lssvr poly", lambda m, a: edited(m, "feature_map.parameters.degree", 10**12)),
    "degree on thirty features": (
        "lssvr poly",
        lambda m, a: (m.update(n_features_in=30),
                      edited(m, "feature_map.parameters.degree", 12))),
    "degree of a kernel": ("svc", lambda m, a: edited(m, "kernel.degree", 10**9)),
    "degree of a kernel, least squares": (
        "kernel lssvc", lambda m, a: edited(m, "kernel.degree", 10**9)),
    "code of a class": ("svc", lambda m, a: a.update(target=a["target"] * 10**12)),
    "classes": ("svc", lambda m, a: a.update(target=np.arange(40))),
    "counts of values": ("lssvr table", lambda m, a: many_rows(m, a, 10**12)),
    "digits far above": ("lssvc scaled", lambda m, a: edited(m, "feature_map.lowest", 10**9)),
    "digits far below": ("lssvc scaled", lambda m, a: edited(m, "feature_map.lowest", -(10**9))),
}  # fmt: skip


LOADER = """
import resource, sys, time, adiabat
adiabat.load(sys.argv[1])
held = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(sys.argv[2]),) * 2)
for path in sys.argv[3:]:
    started = time.perf_counter()
    try:
        adiabat.load(path)
        verdict = 'loaded'
    except BaseException as error:
        verdict = f'{type(error).__name__}: {error}'.replace(chr(10), ' ')
    print(f'{time.perf_counter() - started:.2f} {verdict}', flush=True)
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """What loading each of the bombs gave, and how long it took, in a process of its own."""
    if sys.platform != "linux":
        pytest.skip("needs /proc and a limit on memory")
    folder = tmp_path_factory.mktemp("bombs")
    paths = []
    for number, (name, edit) in enumerate(BOMBS.values()):
        (folder / str(number)).mkdir()
        paths.append(str(resealed(saved(folder / str(number), name), edit)))
    command = [sys.executable, "-c", LOADER, str(saved(folder, "svc three")), str(ROOM), *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return dict(zip(BOMBS, done.stdout.splitlines(), strict=False))


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_costs_anything(verdicts, bomb):
    seconds, _, verdict = verdicts[bomb].partition(" ")
    assert verdict.startswith("ModelFileError") and "MemoryError" not in verdict
    assert float(seconds) < 5.0


@pytest.mark.parametrize("name", MODELS)
def test_a_limit_on_memory_is_kept(tmp_path, name):
    path = saved(tmp_path, name)
    assert adiabat.load(path, max_bytes=LIMIT) is not None
    with pytest.raises(adiabat.ModelFileError, match="GiB are allowed"):
        adiabat.load(path, max_bytes=8)


def test_sparse_rows_of_many_features_count_against_the_limit(tmp_path):
    path = resealed(
        saved(tmp_path, "svc", sparse=True),
        lambda m, a: m.update(shape=[40, 2**31 - 1], n_features_in=2**31 - 1),
    )
    with pytest.raises(
        adiabat.ModelFileError, match="sparse rows of 2147483647 features, would take"
    ):
        adiabat.load(path, max_bytes=1 << 30)


def loosened(manifest, arrays):
    """A model of no use under a tolerance that excuses it."""
    for where in (manifest, manifest.get("machine", {})):
        if "tol" in where:
            where["tol"] = 1e300
        if "parameters" in where:
            where["parameters"]["tol"] = 1e300
    for name in arrays:
        if name.endswith(("machine0_u", "solution", "alpha")):
            arrays[name] = np.zeros_like(arrays[name])


@pytest.mark.parametrize("name", MODELS)
def test_a_tolerance_that_excuses_everything_is_refused(tmp_path, name):
    with pytest.raises(adiabat.ModelFileError):
        adiabat.load(resealed(saved(tmp_path, name), loosened))


@pytest.mark.parametrize("tol", [1e300, 0.0101, -1.0, 0.0])
def test_the_tolerance_of_the_solver_is_checked_apart_from_the_parameter(tmp_path, tol):
    """The parameter of the same file is sound, and so is the model."""
    with pytest.raises(adiabat.ModelFileError, match="a weight or tol is out of range"):
        adiabat.load(resealed(saved(tmp_path, "svc"), lambda m, a: m.update(tol=tol)))


@pytest.mark.parametrize("tol", [1e300, 0.5, 0.0101, float("inf"), -1.0, 0.0])
@pytest.mark.parametrize("kind", [adiabat.SVC, adiabat.LSSVC, adiabat.KernelLSSVR])
def test_no_estimator_takes_such_a_tolerance(kind, tol):
    with pytest.raises(ValueError, match="'tol' parameter"):
        kind(tol=tol).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_in_a_file_is_not_believed(tmp_path, name):
    claimed = {
        "residual": 0.0, "gap": 0.0, "n_samples": 10**6, "n_support": 1, "tol": 1e-30, "ok": True,
        "held_fixed": {}, "n_seen": None, "retain": "",
    }  # fmt: skip

    def edit(manifest, arrays):
        (manifest.get("machine") or manifest)["report"]["certificate"] = claimed

    model = adiabat.load(resealed(saved(tmp_path, name), edit))
    found = model.last_update_.certificate
    assert (found.n_samples, found.ok) == (40, True) and found.tol >= 1e-10
    assert found.held_fixed == model.certificate().held_fixed


REPORTS = {
    "rounds": "many",
    "n_added": -1,
    "n_removed": 1.5,
    "fallbacks": True,
    "seconds": "soon",
    "solver": 7,
    "breakpoints": 10**30,
}


@pytest.mark.parametrize("field", REPORTS)
@pytest.mark.parametrize("name", ["svc", "lssvc", "kernel lssvr"])
def test_a_report_that_makes_no_sense_is_refused(tmp_path, name, field):
    def edit(manifest, arrays):
        manifest["report"][field] = REPORTS[field]

    with pytest.raises(adiabat.ModelFileError, match=r"report|is no number"):
        adiabat.load(resealed(saved(tmp_path, name), edit))


@pytest.mark.parametrize(
    "edit",
    [
        lambda m, a: m["held"].update(C=7.0),
        lambda m, a: m["held"].update(kernel="poly"),
        lambda m, a: m["held"].update(_model=1),
        lambda m, a: m["held"].update(degree=5),
    ],
)
def test_what_is_said_to_be_held_must_be_what_shaped_the_model(tmp_path, edit):
    with pytest.raises(adiabat.ModelFileError, match="held"):
        adiabat.load(resealed(saved(tmp_path, "svc"), edit))


# What brought TypeError, ValueError, OverflowError, IndefiniteKernelError or MemoryError out of it.
ESCAPES = {
    "a kernel that is indefinite": lambda m, a: m["kernel"].update(name="poly", coef0=-1.0),
    "a tolerance of text": lambda m, a: m.update(tol="small"),
    "a huge whole number": lambda m, a: m.update(tol=10**400),
    "labels of two kinds": lambda m, a: edited(m, "formulation.classes", [[0, 1, 1], [1, "a", 2]]),
    "labels of no kind": lambda m, a: edited(m, "formulation.classes", [[0, [], 1], [1, {}, 1]]),
    "no formulation": lambda m, a: m.pop("formulation"),
    "formulation of another name": lambda m, a: m["formulation"].update(name="nobody"),
    "biases of text": lambda m, a: m.update(biases=["x"]),
    "targets in a table": lambda m, a: a.update(target=a["target"][:, None]),
    "weights of text": lambda m, a: a.update(weight=a["weight"].astype(str)),
    "kernel of nothing": lambda m, a: m.update(kernel=None),
    "a parameter of another type": lambda m, a: m["parameters"].update(C=[1]),
    "an estimator that is a list": lambda m, a: m.update(estimator=["SVC"]),
    "an estimator that is none": lambda m, a: m.update(estimator="Popen"),
    "machines of text": lambda m, a: m.update(machines="ab"),
    "features of another number": lambda m, a: m.update(n_features_in=7),
    "features in three dimensions": lambda m, a: a.update(X=a["X"][None]),
    "values that overflow": lambda m, a: a.update(X=a["X"] * 1e200),
    "ids of floats": lambda m, a: a.update(ledger_ids=a["ledger_ids"].astype(float)),
}  # fmt: skip


@pytest.mark.parametrize("escape", ESCAPES)
def test_nothing_but_a_model_file_error_comes_out(tmp_path, escape):
    name = "svc linear" if escape == "origin of another width" else "svc"  # others have none
    with pytest.raises(adiabat.ModelFileError):
        adiabat.load(resealed(saved(tmp_path, name), ESCAPES[escape]))


def test_an_origin_of_another_width_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + 1e4
    adiabat.SVC(kernel="linear").fit(X, X[:, 0] > 1e4).save(tmp_path / "model.adiabat")
    adiabat.load(tmp_path / "model.adiabat")
    with pytest.raises(adiabat.ModelFileError):
        adiabat.load(
            resealed(tmp_path / "model.adiabat", lambda m, a: m["kernel"].update(origin=[0.0]))
        )


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        adiabat.load(tmp_path / "nothing")


def test_files_are_private_and_keep_the_permissions_that_they_have(tmp_path):
    path = saved(tmp_path, "svc")
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    adiabat.load(path).save(path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
