# SPDX-License-Identifier: BSD-3-Clause
"""What requests and answers look like, for ``/openapi.json``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Scalar = str | int | float | bool | None


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProblemBody(BaseModel):
    """A problem, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


class RowsBody(_Strict):
    """Rows: an object of columns and values each, all with the same columns."""

    rows: list[dict[str, Scalar]] = Field(
        min_length=1, examples=[[{"name": "person-00001", "income": 2.5, "colour": "red"}]]
    )


class ErasureBody(_Strict):
    """Ids to erase."""

    ids: list[str | int] = Field(min_length=1, examples=[["person-00001"]])
    missing: Literal["raise", "ignore"] = "raise"


class VerificationBody(_Strict):
    """What to check: with `retrain`, against a model fitted anew, too."""

    retrain: bool = Field(False, examples=[True])


class CertificateBody(BaseModel):
    """The certificate of a model."""

    ok: bool
    residual: float
    tol: float
    gap: float
    n_samples: int
    n_support: int
    held_fixed: dict[str, Any]


class ModelBrief(BaseModel):
    """A model in the list."""

    name: str
    task: str
    entry: int
    hash: str


class ModelList(BaseModel):
    """The models that the key is for."""

    models: list[ModelBrief]


class ModelBody(BaseModel):
    """What a model is, and how it stands."""

    name: str
    task: str
    parameters: dict[str, Any]
    scale: str | None
    id: str
    label: str | None
    rows: int
    features: int
    columns: Any
    classes: list[Any] | None
    sets: dict[str, int] | None
    certificate: CertificateBody | None
    entries: int
    head: str
    time: str
    signed: bool


class PredictionBody(BaseModel):
    """What the model says of one row; decision values are for keys that may review."""

    id: str | None = None
    label: Scalar
    decision: float | dict[str, float] | None = None
    confidence: float | None = Field(
        None, ge=0.0, le=1.0, description="Probability of the label, of a model with a calibration;"
        " to two digits for keys that may not review.",
    )  # fmt: skip


class Predictions(BaseModel):
    """Predictions, and the entry of the log whose model made all of them."""

    entry: int
    hash: str
    predictions: list[PredictionBody]


class ChangeBody(BaseModel):
    """A change that is durable, and in the log."""

    operation: str
    entry: int | None
    hash: str | None
    time: str | None
    reference: str | None
    added: int
    removed: int
    revised: int
    certificate: CertificateBody | None
    replayed: bool = Field(description="Whether an earlier request of this name had done it.")


class PreviewBody(BaseModel):
    """What a change would do; nothing was changed."""

    operation: str
    added: int
    removed: int
    revised: int
    moved: dict[str, Any] | None
    certificate: CertificateBody | None


class EntryBody(BaseModel):
    """An entry of the log."""

    entry: int
    hash: str
    time: str
    operation: str
    by: str
    reference: str | None
    details: dict[str, Any]
    certificate: CertificateBody | None


class LogBody(BaseModel):
    """Entries of the log, the newest first."""

    head: str
    entries: list[EntryBody]


class JobBody(BaseModel):
    """Work that takes a while: ask again for it, at its own address."""

    id: str
    kind: str
    model: str
    state: Literal["waiting", "running", "done", "failed"]
    done: int
    total: int
    created: str
    result: Any = None
    problem: ProblemBody | None = None


class SuspectBody(BaseModel):
    """A row that the others contradict."""

    id: str
    label: Scalar
    prediction: Scalar
    margin: float | None


class SuspectsBody(BaseModel):
    """The rows most contradicted, worst first: exact leave-one-out as of an entry."""

    entry: int
    kind: str
    sentence: str
    suspects: list[SuspectBody]
