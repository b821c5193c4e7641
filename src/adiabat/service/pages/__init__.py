# SPDX-License-Identifier: BSD-3-Clause
"""The pages for people: rendered here, without a script where one is not needed."""

from __future__ import annotations

from fastapi import FastAPI

from adiabat.service.access import Gate
from adiabat.service.pages import erasure, log, models, predict, review, sign_in
from adiabat.service.pages.frame import Frame
from adiabat.service.work import Work

__all__ = ["add_pages"]


def add_pages(app: FastAPI, gate: Gate, work: Work) -> None:
    """Give an application its pages."""
    frame = Frame(app, gate, work)
    for part in (sign_in, models, review, erasure, log, predict):
        part.add(app, frame)
