# SPDX-License-Identifier: BSD-3-Clause
"""A newcomer's first hour: the wheel into an empty environment, the tour, a pipeline of their own.

python tests/walks/newcomer.py WHEEL

Run by `make walk`, and by hand: it needs a package index and takes a minute or two. Nothing of this
repository is on the path of the environment, so that a file missing from the wheel is found.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: What somebody who knows scikit-learn tries first.
OWN_PIPELINE = """
import joblib
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adiabat

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), adiabat.SVC(C=10.0, random_state=0))
assert cross_val_score(model, X, y, cv=3).mean() > 0.95
search = GridSearchCV(model, {"svc__C": [0.1, 10.0]}, cv=2).fit(X, y)
assert search.best_params_["svc__C"] in (0.1, 10.0)

X.index = [f"patient-{i}" for i in range(len(X))]
alone = adiabat.IncrementalPipeline(adiabat.SVC(C=10.0)).fit(X, y)
alone.forget(["patient-17", "patient-42"])
again = adiabat.IncrementalPipeline(adiabat.SVC(C=10.0)).fit(
    X.drop(["patient-17", "patient-42"]), y.drop([17, 42])
)
assert np.abs(alone.decision_function(X) - again.decision_function(X)).max() < 1e-9
assert alone.certificate().ok
alone.save("model.adiabat")
assert adiabat.load("model.adiabat").forget(["patient-3"]).certificate().ok
joblib.dump(alone, "model.joblib")
assert joblib.load("model.joblib").certificate().ok
adiabat.show_versions()
print("own pipeline: ok")
"""


def main(wheel: str) -> None:
    """Take the walk; an error ends it."""
    wheel = str(Path(wheel).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        python = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"

        def run(*words: object) -> None:
            subprocess.run([str(python), *map(str, words)], cwd=folder, check=True)

        run(
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{wheel}[cli]",
            "pandas",
        )
        run("-c", "import adiabat; print(adiabat.__version__, adiabat.__file__)")
        (folder / "tour.md").write_text((ROOT / "docs" / "tour.md").read_text("utf-8"), "utf-8")
        run("-m", "doctest", "tour.md")
        print("tour: ok")
        (folder / "own.py").write_text(OWN_PIPELINE)
        run("own.py")
        run("-m", "pip", "check", "--disable-pip-version-check")
        command = python.with_name("adiabat")
        subprocess.run([str(command), "--help"], cwd=folder, check=True, capture_output=True)
        print("adiabat --help: ok")


if __name__ == "__main__":
    main(sys.argv[1])
