# SPDX-License-Identifier: BSD-3-Clause
"""Digests and commitments: what the log says about rows without holding any of them.

Every record has a key of its own, drawn when it is learned and destroyed when it is erased. Its id
and its content enter the log only through HMACs under that key: once the key is gone, nobody can
test a guess against them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterable
from typing import Any, Final

KEY_BYTES: Final = 32
_SET_BYTES: Final = 256
_MODULUS: Final = 1 << (8 * _SET_BYTES)


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, ASCII, shortest floats."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def sha256(data: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def new_keys(count: int) -> list[bytes]:
    """Fresh random keys."""
    drawn = os.urandom(KEY_BYTES * count)
    return [drawn[KEY_BYTES * i : KEY_BYTES * (i + 1)] for i in range(count)]


def commitment(key: bytes, name: str) -> bytes:
    """What the log keeps of an id."""
    return hmac.digest(key, b"id\0" + name.encode(), "sha256")


def leaf(key: bytes, content: bytes) -> bytes:
    """What the digest of the data keeps of a record."""
    return hmac.digest(key, b"row\0" + content, "sha256")


class SetDigest:
    """Digest of a set of leaves, in no order: adding and removing one does not read the others.

    The sum of SHAKE-256(leaf), 2048 bits each, modulo 2^2048 (the AdHash of Bellare and Micciancio
    at a width where the generalised birthday attack is out of reach).

    Parameters
    ----------
    data : bytes, optional
        What `to_bytes` gave.
    """

    def __init__(self, data: bytes = b"") -> None:
        self._sum = int.from_bytes(data, "big")

    def add(self, leaves: Iterable[bytes]) -> None:
        """Put leaves in."""
        self._sum = (self._sum + _total(leaves)) % _MODULUS

    def remove(self, leaves: Iterable[bytes]) -> None:
        """Take leaves out."""
        self._sum = (self._sum - _total(leaves)) % _MODULUS

    def to_bytes(self) -> bytes:
        """The sum itself."""
        return self._sum.to_bytes(_SET_BYTES, "big")

    def hexdigest(self) -> str:
        """SHA-256 of the sum, in hexadecimal."""
        return sha256(self.to_bytes())


def _total(leaves: Iterable[bytes]) -> int:
    return sum(int.from_bytes(hashlib.shake_256(item).digest(_SET_BYTES), "big") for item in leaves)
