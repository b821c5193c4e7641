# SPDX-License-Identifier: BSD-3-Clause
"""An update of an estimator and its model as one transaction.

    with Transaction(self) as step:
        change = ...                          # checks: what can be refused is refused here
        step.solve(model, change, method)     # plan, kernel values, machines, judge
        with step.committing() as info:       # interrupts deferred
            ...                               # the estimator adopts the model

Whatever fails before the commit is rolled back here, and nowhere else: machines and samples of the
solver, parts that were committed before, the tolerance, and the attributes of the estimators.
"""

from __future__ import annotations

import sys
from typing import Any

from adiabat.engine.interrupts import deferred_interrupts
from adiabat.engine.report import SolveInfo
from adiabat.engine.solver import Step
from adiabat.errors import NotOptimalError
from adiabat.estimators.atomic import all_or_nothing
from adiabat.estimators.kernel.change import SampleChange
from adiabat.estimators.kernel.hard_margin import NO_HARD_MARGIN, has_errors, require_precision
from adiabat.estimators.kernel.limit import keep_within
from adiabat.estimators.kernel.model import Model
from adiabat.estimators.kernel.naming import name_traces, named_by_id
from adiabat.estimators.kernel.persistence import pack, unpack
from adiabat.estimators.kernel.plan import Plan
from adiabat.logs import Progress, listen


class Transaction(all_or_nothing):
    """An update of estimators and one model: solved, then committed; or rolled back."""

    def __init__(self, *estimators: Any) -> None:
        super().__init__(*estimators)
        self._info: SolveInfo | None = None  # of parts that were committed
        self._step: Step | None = None
        self._model: Model | None = None
        self._former: dict[str, Any] | None = None  # the model before the first of several parts
        self._n_parts = 0
        self._tol: float | None = None
        self._limit: float | None = None  # bytes
        self._progress: Progress | None = None

    def require(self, model: Model, estimator: Any, started: float) -> None:
        """Judge the model by the tolerance of its estimator, and keep within its memory.

        The estimator's listeners are told how far the update is.
        """
        self._model, self._tol = model, model.tol
        model.tol, self._limit = estimator.tol, estimator.memory_limit
        verbose = getattr(estimator, "verbose", False)
        self._progress = listen(type(estimator).__name__, started, verbose)

    def solve(
        self, model: Model, change: SampleChange, method: str = "auto", trace: bool = False
    ) -> None:
        """Go to the optimum after a change; nothing is committed yet."""
        self._plan = plan = Plan(model, change)
        keep_within(plan, model.solver, self._limit)
        self._step = step = plan.solver.changing()
        step.info.progress = self._progress
        new = step.add(plan.X)
        # there is no path of optima from kernel to kernel: a traced one starts from no weights
        rows = plan.row_changes(new, warm=not trace)
        names = plan.row_names(new, rows) if trace else {}
        try:
            step.solve(rows, method, trace)
        except NotOptimalError as error:
            raise named_by_id(error, plan.position, plan.ids()) from error
        name_traces(step.info, plan.formulation, names)
        harder = plan.formulation.raised()
        if harder is not None and has_errors(plan.solver):
            require_precision(plan.solver, harder)
            step.rollback()
            try:
                self.solve(model, change._replace(formulation=harder), method, trace)
            except NotOptimalError as error:
                raise ValueError(NO_HARD_MARGIN) from error

    def save(self, model: Model) -> None:
        """Keep a copy of the model, which allows `commit_part`.

        Rows and weights are copied, which costs little beside a solve where little is kept.
        """
        self._model, self._version, self._former = model, model.version, pack(model)

    def commit_part(self) -> None:
        """Commit what was solved, with more to come; a later failure rolls it back as well."""
        with deferred_interrupts():
            self._n_parts += 1
            self._info = self._info or SolveInfo()
            self._info.add(self._commit())

    def committing(self) -> Committing:
        """Commit what was solved, if anything was; interrupts are deferred in the block."""
        return Committing(self)

    def _commit(self, whole: bool = False) -> SolveInfo:
        """Commit a part; with the last the `whole`, whose information is then that of all parts."""
        self._committed = whole
        if self._step is None:
            info = SolveInfo()
        else:
            step, self._step = self._step, None
            self._plan.adopt(*step.commit(self._plan.gone, self._plan.retired))
            info = step.info
        return self._info if whole and self._info else info

    def _rollback(self) -> None:
        if self._step is not None:
            self._step.rollback()
        if self._model is not None and self._n_parts:
            assert self._former is not None
            former = unpack(self._former, self._limit)
            former.version = self._version
            self._model.__dict__.update(former.__dict__)
        if self._model is not None and self._tol is not None:
            self._model.tol = self._tol
        super()._rollback()


class Committing(deferred_interrupts):
    """A block in which a transaction has been committed, and interrupts are deferred."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def __enter__(self) -> SolveInfo:
        super().__enter__()
        try:
            return self._transaction._commit(whole=True)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
