# SPDX-License-Identifier: BSD-3-Clause
"""What the service logs, as text or JSON. No id and no feature is in it: routes, not paths."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(said)


class PlainLines(logging.Formatter):
    """Text, fields behind it."""

    def format(self, record: logging.LogRecord) -> str:  # noqa: D102
        said = " ".join(f"{k}={v}" for k, v in getattr(record, "fields", {}).items())
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return f"{time} {record.levelname.lower()} {record.getMessage()} {said}".rstrip()


def log_to_stderr(as_json: bool) -> None:
    """Have ``adiabat.*`` logged to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else PlainLines())
    logger = logging.getLogger("adiabat")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
