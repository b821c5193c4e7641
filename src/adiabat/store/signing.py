# SPDX-License-Identifier: BSD-3-Clause
"""Ed25519 signatures of log entries, under a key that stays outside the store.

A chain of hashes shows that nothing in it was altered; only a signature under a key that the
store's keeper does not publish shows that the whole was not written anew.
"""

from __future__ import annotations

import os
from typing import Any

from adiabat.errors import StoreError


class Signer:
    """A private key in PEM, as ``openssl genpkey -algorithm ed25519`` writes it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        name = os.fspath(path)
        try:
            with open(path, "rb") as file:
                key: Any = load_pem_private_key(file.read(), password=None)
        except (OSError, ValueError, TypeError) as error:
            raise StoreError(
                f"signing key {name!r} cannot be read ({error}); it must be an unencrypted PEM file"
            ) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise StoreError(f"signing key {name!r} is not an Ed25519 key; make one with openssl")
        self._key = key

    @property
    def public_key(self) -> bytes:
        """The public key, 32 bytes."""
        raw: bytes = self._key.public_key().public_bytes_raw()
        return raw

    def sign(self, digest: str) -> bytes:
        """Signature of an entry's hash."""
        signature: bytes = self._key.sign(bytes.fromhex(digest))
        return signature


def signature_holds(public_key: bytes, signature: bytes, digest: str) -> bool:
    """Whether the signature of an entry's hash is that key's."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, bytes.fromhex(digest))
    except (InvalidSignature, ValueError):
        return False
    return True
