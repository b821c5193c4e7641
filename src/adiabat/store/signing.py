# SPDX-License-Identifier: BSD-3-Clause
"""Keys that stay outside a store: Ed25519 for its log, and one for the marks of erased ids.

A chain of hashes shows that nothing in it was altered; only a signature under a key that the
store's keeper does not publish shows that the whole was not written anew. What is in the folder
cannot say that the store was ever signed, since it can be edited with the rest: the caller says so,
by giving the key that must have signed it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from adiabat.errors import StoreDamagedError, StoreError
from adiabat.store import log, schema
from adiabat.store.digests import KEY_BYTES, sha256
from adiabat.store.settings import Settings

Path = str | os.PathLike[str]

_FINGERPRINT: Final = "adiabat suppression key"
_MOST_KEY_BYTES: Final = 1 << 16


class Signer:
    """A private key in PEM, as ``openssl genpkey -algorithm ed25519`` writes it."""

    def __init__(self, path: Path) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        name = os.fspath(path)
        try:
            key: Any = load_pem_private_key(_read(path), password=None)
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


@dataclass(frozen=True)
class Keys:
    """What the caller has: a key to sign with, the key that must have signed, that of the marks."""

    signer: Signer | None = None
    public_key: bytes | None = None
    suppression: bytes | None = None
    allow_unsigned: bool = False

    @classmethod
    def read(
        cls,
        signing_key: Path | None = None,
        public_key: Path | None = None,
        suppression_key: Path | None = None,
        allow_unsigned: bool = False,
    ) -> Keys:
        """The keys of files."""
        return cls(
            None if signing_key is None else Signer(signing_key),
            None if public_key is None else read_public_key(public_key),
            None if suppression_key is None else read_suppression_key(suppression_key),
            allow_unsigned,
        )

    def expected(self, settings: Settings) -> bytes | None:
        """The public key under which the store must be signed, if the caller says so."""
        if self.public_key is not None or self.signer is None:
            return self.public_key
        passed_over = settings.public_key is None and self.allow_unsigned
        return None if passed_over else self.signer.public_key

    def require_signer(self, folder: str, settings: Settings) -> None:
        """Refuse to change a signed store without its key."""
        wanted = settings.public_key
        if wanted and (self.signer is None or self.signer.public_key.hex() != wanted):
            raise _other_key(folder, wanted)

    def of_marks(self, settings: Settings) -> bytes:
        """The key of the marks of erased ids: the caller's, or the store's own."""
        wanted, given = settings.suppression_key, self.suppression
        if wanted is None and given is None:
            return bytes.fromhex(settings.pepper)
        if wanted is None:
            raise StoreError(
                "a suppression key is given, and the store marks erased ids under one of its own; "
                "leave the key out"
            )
        if given is None or fingerprint(given) != wanted:
            raise StoreError(
                "the store marks erased ids under a key that is kept elsewhere; give that key "
                "(suppression_key=, or --suppression-key)"
            )
        return given


def require_signed(
    connection: sa.Connection, folder: str, head: log.Entry, settings: Settings, keys: Keys
) -> None:
    """Refuse a store that is not signed under the key that the caller expects."""
    expected = keys.expected(settings)
    if settings.public_key is None:
        if expected is None:
            return
        raise StoreError(
            f"{folder!r} is not signed, and a key is given: its signatures may have been taken "
            "off. If it never was signed, leave the key out, or allow an unsigned store "
            "(allow_unsigned=True, or --allow-unsigned)"
        )
    if expected is not None and expected.hex() != settings.public_key:
        raise _other_key(folder, settings.public_key)
    row = connection.execute(
        sa.select(schema.signatures).where(schema.signatures.c.seq == head.seq)
    ).first()
    wanted = bytes.fromhex(settings.public_key)
    if row is None or row.public_key != wanted:
        raise StoreDamagedError(f"entry {head.seq} is not signed under the expected key")
    if not signature_holds(wanted, row.signature, head.hash):
        raise StoreDamagedError(f"the signature of entry {head.seq} is not valid")


def sign(connection: sa.Connection, entry: log.Entry, signer: Signer | None) -> None:
    """Keep the signature of an entry beside it."""
    if signer is not None:
        connection.execute(
            sa.insert(schema.signatures).values(
                seq=entry.seq, public_key=signer.public_key, signature=signer.sign(entry.hash)
            )
        )


def read_signature(connection: sa.Connection, entry: log.Entry) -> bytes | None:
    """The signature of an entry; None if it has none."""
    found: bytes | None = connection.execute(
        sa.select(schema.signatures.c.signature).where(schema.signatures.c.seq == entry.seq)
    ).scalar_one_or_none()
    return found


def signature_holds(public_key: bytes, signature: Any, digest: str) -> bool:
    """Whether the signature of an entry's hash is that key's."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, bytes.fromhex(digest))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of an Ed25519 public key in PEM."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    name = os.fspath(path)
    try:
        key = load_pem_public_key(_read(path))
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise StoreError(
            f"public key {name!r} cannot be read ({error}); it must be a PEM file"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise StoreError(f"public key {name!r} is not an Ed25519 key")
    raw: bytes = key.public_bytes_raw()
    return raw


def read_suppression_key(path: Path) -> bytes:
    """The key of a file, such as ``openssl rand -hex 32`` writes."""
    name = os.fspath(path)
    try:
        key = _read(path).strip()
    except OSError as error:
        raise StoreError(f"suppression key {name!r} cannot be read ({error})") from error
    if not KEY_BYTES <= len(key) <= _MOST_KEY_BYTES:
        raise StoreError(
            f"suppression key {name!r} has {len(key)} bytes, and {KEY_BYTES} to {_MOST_KEY_BYTES} "
            "are needed; make one with openssl rand -hex 32"
        )
    return key


def fingerprint(key: bytes) -> str:
    """What a store knows of a suppression key, to tell whether it is given the right one."""
    return sha256(_FINGERPRINT.encode() + b"\0" + key)[:32]


def _read(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MOST_KEY_BYTES + 1)


def _other_key(folder: str, wanted: str) -> StoreError:
    return StoreError(
        f"{folder!r} signs its log under the key {wanted[:16]}…; give that key to change it "
        "(signing_key=, or --signing-key), or its public key to read it"
    )
