# SPDX-License-Identifier: BSD-3-Clause
"""Model files: a zip of one JSON manifest and one ``.npy`` file per array.

Layout. Every member is stored uncompressed. ``manifest.json`` holds the caller's content and, for
each array, its type, shape, size and SHA-256; the comment of the zip holds the version of the
format and the SHA-256 of the manifest. So the comment vouches for the manifest, the manifest for
the arrays, and any zip tool can look inside.

Invariants. A file is complete or absent: it is written beside its destination and moved into place.
The same content gives the same bytes. Reading runs no code, unpickles nothing, and allocates no
more than the file is long: there is nothing to decompress, and every size is checked first.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from adiabat.errors import ModelFileError

__all__ = [
    "FORMAT_NAME",
    "FORMAT_VERSION",
    "pack_archive",
    "read_archive",
    "unpack_archive",
    "write_archive",
]

AnyArray: TypeAlias = npt.NDArray[Any]
PathLike: TypeAlias = str | os.PathLike[str]

#: Name and version of the format, in the comment of the zip and in the manifest.
FORMAT_NAME: Final = "adiabat-model"
FORMAT_VERSION: Final = 1

_MANIFEST: Final = "manifest.json"
_SUFFIX: Final = ".npy"
_ARRAY_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_SEAL: Final = re.compile(rb"adiabat-model/([1-9][0-9]{0,8}) sha256=([0-9a-f]{64})")
_ARRAY_FIELDS: Final = {"bytes", "dtype", "sha256", "shape"}
# The preamble of a .npy file of version 1.0, and its header as NumPy writes it.
_MAGIC: Final = b"\x93NUMPY\x01\x00"
_HEADER: Final = re.compile(
    rb"\{'descr': '([<>|][biufSU][0-9]{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(([0-9, ]*)\), \} *\n"
)
_KINDS: Final = "biufSU"  # booleans, numbers and text; never objects or records
_END_RECORD: Final = b"PK\x05\x06"
_END_RECORD_BYTES: Final = 22
_MAX_MANIFEST_BYTES: Final = 1 << 26
_PIECE_BYTES: Final = 1 << 20
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)  # the first date a zip can hold: files carry no time
_DAMAGED: Final = "restore the file from a copy, or save the model again"
# What zipfile, json and NumPy raise on bytes that are not what they seem.
_PARSE_ERRORS: Final = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


def pack_archive(manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """The bytes that `write_archive` would write."""
    _require_plain(manifest, "manifest")
    ready = {name: _writable_array(name, arrays[name]) for name in sorted(arrays)}
    buffer = io.BytesIO()
    _write(buffer, manifest, ready)
    return buffer.getvalue()


def unpack_archive(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """What `read_archive` would read from a file of these bytes; `name` is for errors."""
    return _open_and_read(name, io.BytesIO(data))


def write_archive(path: PathLike, manifest: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a model file, all or nothing.

    Parameters
    ----------
    path : path-like
        Destination. What is there stays untouched until the new file is complete and on disk.
    manifest : dict
        Plain JSON values; keys must be strings, numbers finite. Tuples come back as lists.
    arrays : dict of str to array
        Booleans, integers, floats, bytes or text; no objects. Names are letters, digits, ``_``,
        ``.`` and ``-``.

    Raises
    ------
    TypeError, ValueError
        If the content cannot be held in a model file. Nothing is written.
    OSError
        If the file cannot be written. Nothing is left behind.
    """
    _require_plain(manifest, "manifest")
    ready = {name: _writable_array(name, arrays[name]) for name in sorted(arrays)}
    # A link keeps pointing where it did: the file that it names is replaced, not the link.
    target = os.path.realpath(path)
    with _replacing(target) as file:
        _write(file, manifest, ready)


def _write(file: IO[bytes], manifest: Mapping[str, Any], ready: Mapping[str, AnyArray]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        described = {name: _write_array(archive, name, array) for name, array in ready.items()}
        document = {
            "format": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "arrays": described,
            "total_bytes": sum(entry["bytes"] for entry in described.values()),
            "content": manifest,
        }
        text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
        data = text.encode("ascii")
        if len(data) > _MAX_MANIFEST_BYTES:
            raise ValueError(
                f"manifest takes {len(data)} bytes, more than {_MAX_MANIFEST_BYTES}; "
                "move what is long into arrays"
            )
        archive.writestr(_member(_MANIFEST, len(data)), data)
        seal = f"{FORMAT_NAME}/{FORMAT_VERSION} sha256={hashlib.sha256(data).hexdigest()}"
        archive.comment = seal.encode("ascii")


def read_archive(path: PathLike) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Read a model file.

    Parameters
    ----------
    path : path-like
        A file that `write_archive` wrote.

    Returns
    -------
    manifest : dict
    arrays : dict of str to ndarray
        New arrays, in the order of their names.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or altered, or its format is newer.
    OSError
        If the file cannot be opened.
    """
    with open(path, "rb") as file:
        return _open_and_read(os.fspath(path), file)


def _open_and_read(name: str, file: IO[bytes]) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(name, file, archive)
    except ModelFileError:
        raise
    except _PARSE_ERRORS as error:
        raise ModelFileError(
            f"{name!r} is not a model file, or is damaged ({error}); {_DAMAGED}"
        ) from error


@contextmanager
def _replacing(target: str) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `target` once it is safely on disk, or vanishes."""
    folder = os.path.dirname(target)
    beside = os.path.join(folder, f".adiabat-{secrets.token_hex(8)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Model files hold training rows: for the user alone, unless the file that is there says more.
    descriptor = os.open(beside, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with open(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(beside, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    if os.name == "posix":
        # The new name is an entry of the folder; until that is on disk, a power cut may undo it.
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _require_plain(value: Any, where: str) -> None:
    """Refuse what JSON would change without a word: keys that are not strings."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys must be strings")
            _require_plain(item, f"{where}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _require_plain(item, f"{where}[{index}]")
    elif not (value is None or isinstance(value, (bool, int, float, str))):
        raise TypeError(f"{where} is a {type(value).__name__}; a manifest holds plain JSON values")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where}={value!r} is not finite; JSON has no such number")


def _writable_array(name: str, value: Any) -> AnyArray:
    if not isinstance(name, str) or not _ARRAY_NAME.fullmatch(name):
        raise ValueError(f"array name {name!r} must match {_ARRAY_NAME.pattern}")
    array = np.asarray(value)
    if not _supported(array.dtype):
        raise TypeError(
            f"array {name!r} has dtype {array.dtype}, which a model file cannot hold; convert it "
            "to booleans, integers, floats, bytes or text"
        )
    return array


def _supported(dtype: np.dtype[Any]) -> bool:
    simple = dtype.kind in _KINDS and dtype.subdtype is None and dtype.itemsize > 0
    return simple and not (dtype.kind == "f" and dtype.itemsize > 8)


def _member(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=_LONG_AGO)
    info.create_system = 3  # the same bytes on every platform
    info.external_attr = 0o600 << 16
    info.file_size = size
    return info


class _Hashed(io.RawIOBase):
    """A stream that passes on what it is given, and takes its SHA-256 and length."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.digest = hashlib.sha256()
        self.length = 0

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.length += len(data)
        return self.stream.write(data)

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.digest.update(data)
        self.length += len(data)
        return data


def _write_array(archive: zipfile.ZipFile, name: str, array: AnyArray) -> dict[str, Any]:
    # The size is an estimate that decides in time whether the member needs the 64-bit form.
    with archive.open(_member(name + _SUFFIX, array.nbytes + _PIECE_BYTES), "w") as stream:
        hashed = _Hashed(stream)
        np.lib.format.write_array(hashed, array, version=(1, 0), allow_pickle=False)
    return {
        "bytes": hashed.length,
        "dtype": array.dtype.str,
        "sha256": hashed.digest.hexdigest(),
        "shape": list(array.shape),
    }


def _read(
    path: str, file: IO[bytes], archive: zipfile.ZipFile
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    seal = _SEAL.fullmatch(archive.comment)
    if seal is None:
        _refuse(path, "is not a model file, or its seal is damaged")
    version = int(seal[1])
    if version > FORMAT_VERSION:
        _refuse(
            path,
            f"has format version {version}, and this release reads up to {FORMAT_VERSION}",
            "upgrade adiabat, or restore the file from a copy if it is no newer than this release",
        )
    members = _members(path, file, archive)
    if _MANIFEST not in members:
        _refuse(path, "has no manifest")
    document = _read_manifest(path, archive, members.pop(_MANIFEST), seal[2].decode())
    described = document["arrays"]
    expected = {name + _SUFFIX for name in described}
    if missing := sorted(expected - members.keys()):
        _refuse(path, f"lacks {', '.join(missing[:10])}")
    if unknown := sorted(members.keys() - expected):
        _refuse(path, f"holds {', '.join(unknown[:10])}, which its manifest does not list")
    for name, entry in described.items():
        if members[name + _SUFFIX].file_size != entry["bytes"]:
            _refuse(path, f"has an array {name!r} of another size than its manifest says")
    if sum(entry["bytes"] for entry in described.values()) != document["total_bytes"]:
        _refuse(path, "has arrays of another total size than its manifest says")
    arrays = {
        name: _read_array(path, archive, members[name + _SUFFIX], name, entry)
        for name, entry in sorted(described.items())
    }
    return document["content"], arrays


def _members(path: str, file: IO[bytes], archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name, once nothing about names, sizes and flags is out of order."""
    members: dict[str, zipfile.ZipInfo] = {}
    length = file.seek(0, os.SEEK_END)
    for info in archive.infolist():
        name = info.filename
        if info.orig_filename != name or not (
            name == _MANIFEST
            or (name.endswith(_SUFFIX) and _ARRAY_NAME.fullmatch(name.removesuffix(_SUFFIX)))
        ):
            _refuse(path, f"holds a member of unexpected name {info.orig_filename!r}")
        if name in members:
            _refuse(path, f"holds {name!r} twice")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            _refuse(path, f"holds {name!r} compressed, and model files are not")
        if info.flag_bits & 0x1:
            _refuse(path, f"holds {name!r} encrypted, and model files are not")
        members[name] = info
    # Stored members that do not overlap cannot be longer than the file.
    if sum(info.file_size for info in members.values()) > length:
        _refuse(path, "declares more content than it is long")
    file.seek(max(0, length - _END_RECORD_BYTES - len(archive.comment)))
    tail = file.read(len(_END_RECORD))
    if tail != _END_RECORD or min((i.header_offset for i in members.values()), default=0) != 0:
        _refuse(path, "has foreign bytes before or after its content")
    return members


def _read_manifest(
    path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, sha256: str
) -> dict[str, Any]:
    if info.file_size > _MAX_MANIFEST_BYTES:
        _refuse(path, f"has a manifest of {info.file_size} bytes")
    data = archive.read(info)
    if hashlib.sha256(data).hexdigest() != sha256:
        _refuse(path, "has a manifest that does not match its checksum")
    document = json.loads(data, parse_constant=lambda text: _refuse(path, f"holds {text}"))
    if not isinstance(document, dict):
        _refuse(path, "has a manifest of unexpected form")
    if document.get("format") != FORMAT_NAME or document.get("version") != FORMAT_VERSION:
        _refuse(path, f"does not hold format {FORMAT_NAME!r} version {FORMAT_VERSION}")
    described = document.get("arrays")
    sound = (
        set(document) == {"format", "version", "arrays", "total_bytes", "content"}
        and isinstance(document["content"], dict)
        and _is_size(document["total_bytes"])
        and isinstance(described, dict)
        and all(_is_entry(entry) for entry in described.values())
    )
    if not sound:
        _refuse(path, "has a manifest of unexpected form")
    return document


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == _ARRAY_FIELDS
        and _is_size(entry["bytes"])
        and isinstance(entry["dtype"], str)
        and isinstance(entry["sha256"], str)
        and isinstance(entry["shape"], list)
        and all(_is_size(length) for length in entry["shape"])
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_array(
    path: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, entry: dict[str, Any]
) -> AnyArray:
    with archive.open(info) as stream:
        hashed = _Hashed(stream)
        # Matched and not evaluated: what is not exactly such a header is not read at all.
        magic, length = hashed.read(len(_MAGIC)), hashed.read(2)
        header = _HEADER.fullmatch(hashed.read(int.from_bytes(length, "little")))
        if magic != _MAGIC or header is None:
            _refuse(path, f"has an array {name!r} of a kind that is not allowed")
        dtype = np.dtype(header[1].decode())
        shape = tuple(int(part) for part in header[3].split(b",") if part)
        if not _supported(dtype):
            _refuse(path, f"has an array {name!r} of dtype {dtype}, which is not allowed")
        if dtype.str != entry["dtype"] or list(shape) != entry["shape"]:
            _refuse(path, f"has an array {name!r} of another type than its manifest says")
        if math.prod(shape) * dtype.itemsize != info.file_size - hashed.length:
            _refuse(path, f"has an array {name!r} whose shape does not fit its size")
        array = np.empty(shape, dtype, order="F" if header[2] == b"True" else "C")
        buffer = array.reshape(-1, order="A").view(np.uint8)
        filled = 0
        while piece := hashed.read(_PIECE_BYTES):
            buffer[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
    if filled != buffer.size or hashed.digest.hexdigest() != entry["sha256"]:
        _refuse(path, f"has an array {name!r} that does not match its checksum")
    return array


def _refuse(path: str, what: str, remedy: str = _DAMAGED) -> NoReturn:
    raise ModelFileError(f"{path!r} {what}; {remedy}")
