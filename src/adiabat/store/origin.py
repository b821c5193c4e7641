# SPDX-License-Identifier: BSD-3-Clause
"""Who asked for a change, and how a retry is told from another request of the same name.

The log has the name of a request and a mark of its content: an HMAC under the keys of the rows that
it names. Erasing one of them destroys its key, and with it the way to test a guess. An erasure has
no such mark; the marks of the ids that it erased stand in its entry.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from adiabat.store.records import Record


@dataclass(frozen=True)
class Origin:
    """Who asks for a change: the name of a key, of a request, and the request's content."""

    by: str
    request: str | None = None
    content: bytes | None = None

    def to_log(self, touched: Iterable[Record]) -> dict[str, str]:
        """What the log keeps of it, after a change of some rows."""
        if self.request is None:
            return {"by": self.by}
        found = {"by": self.by, "request": self.request}
        keys = [record.key for record in touched]
        if keys and self.content is not None:
            found["content"] = content_mark(keys, self.content)
        return found


def content_mark(keys: Iterable[bytes], content: bytes) -> str:
    """The mark of a request's content under the keys of its rows."""
    joined = hashlib.sha256(b"".join(sorted(keys))).digest()
    return hmac.digest(joined, b"request\0" + content, "sha256").hex()


def new_reference() -> str:
    """A reference for an erasure that was given none."""
    return f"erasure-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}"
