# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects on a volume of RFS: the calls of liboftl(3), for Python.

    with oftl.Volume("/tmp/volume") as volume:
        volume.create(17)
        volume.write(17, b"content", offset=100)
        volume.flush(17)

The library is found by its name, or where the environment says: OFTL_LIBRARY=PATH.
"""

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

WRITE_MAX = 1 << 20  # bytes of one write
OBJECT_MAX = 252 << 44  # bytes of an object
USER_MAX = 256  # bytes of the user's attribute

_SIZE, _MTIME, _USER = 1, 2, 4


class _Oattr(ctypes.Structure):
    """struct oattr of oftl.h."""

    _fields_ = [
        ("set", ctypes.c_uint32),
        ("user_len", ctypes.c_uint32),
        ("size", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("mtime", ctypes.c_int64),
        ("ctime", ctypes.c_int64),
        ("btime", ctypes.c_int64),
        ("user", ctypes.c_uint8 * USER_MAX),
    ]


@dataclass(frozen=True)
class Attributes:
    """Attributes of an object: sizes in bytes, times in ns since 1970."""

    size: int
    used: int
    mtime: int
    ctime: int
    btime: int
    user: bytes


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("OFTL_LIBRARY", "liboftl.so.1"), use_errno=True)
    handle, oid, length = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
    data, attributes = ctypes.c_char_p, ctypes.POINTER(_Oattr)
    number = ctypes.POINTER(ctypes.c_uint64)
    for name, result, arguments in (
        ("oftl_open", handle, [ctypes.c_char_p]),
        ("oftl_close", ctypes.c_int, [handle]),
        ("oftl_message", ctypes.c_char_p, []),
        ("oftl_next", ctypes.c_int, [handle, number, number]),
        ("oread", ctypes.c_ssize_t, [handle, oid, oid, length, data]),
        ("owrite", ctypes.c_int, [handle, oid, oid, length, data]),
        ("oflush", ctypes.c_int, [handle, oid]),
        ("ocreate", ctypes.c_int, [handle, oid]),
        ("odelete", ctypes.c_int, [handle, oid]),
        ("ogetattr", ctypes.c_int, [handle, oid, attributes]),
        ("osetattr", ctypes.c_int, [handle, oid, attributes]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _failed() -> OSError:
    """What the last call said. OSError makes FileNotFoundError of ENOENT, and so on."""
    return OSError(ctypes.get_errno(), _library.oftl_message().decode(errors="replace"))


def _number(oid: int, name: str = "object") -> int:
    """ctypes would cut off what does not fit."""
    if not 0 <= oid < 1 << 64:
        raise ValueError(f"{name} {oid}: must be from 0 to 2**64 - 1")
    return oid


class Volume:
    """A volume that this process owns: an image file, a zoned drive, or where one is mounted.

    OSError with the errno of liboftl(3) is raised by whatever fails.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._handle: int | None = _library.oftl_open(os.fsencode(path))
        if self._handle is None:
            raise _failed()

    def close(self) -> None:
        """All that was done is durable. Nothing can be done with it afterwards."""
        handle, self._handle = self._handle, None
        if handle is not None and _library.oftl_close(handle):
            raise _failed()

    def __enter__(self) -> "Volume":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the volume is closed")
        return self._handle

    def _call(self, name: str, *arguments: object) -> int:
        result: int = getattr(_library, name)(self._open(), *arguments)
        if result < 0:
            raise _failed()
        return result

    def create(self, oid: int) -> None:
        """ocreate(): FileExistsError if there is one."""
        self._call("ocreate", _number(oid))

    def delete(self, oid: int) -> None:
        """odelete()."""
        self._call("odelete", _number(oid))

    def read(self, oid: int, length: int, offset: int = 0) -> bytes:
        """oread(): fewer bytes where the object ends."""
        buffer = ctypes.create_string_buffer(_number(length, "length"))
        n = self._call("oread", _number(oid), _number(offset, "offset"), length, buffer)
        return buffer.raw[:n]

    def write(self, oid: int, data: bytes, offset: int = 0) -> None:
        """owrite(): after a power cut all of it is there, or none."""
        self._call("owrite", _number(oid), _number(offset, "offset"), len(data), data)

    def flush(self, oid: int) -> None:
        """oflush(): what was done to this object is durable."""
        self._call("oflush", _number(oid))

    def getattr(self, oid: int) -> Attributes:
        """ogetattr()."""
        a = _Oattr()
        self._call("ogetattr", _number(oid), ctypes.byref(a))
        return Attributes(a.size, a.used, a.mtime, a.ctime, a.btime, bytes(a.user[: a.user_len]))

    def setattr(
        self,
        oid: int,
        *,
        size: int | None = None,
        mtime: int | None = None,
        user: bytes | None = None,
    ) -> None:
        """osetattr(), of those that are given; without bytes the user's attribute goes."""
        a = _Oattr()
        if size is not None:
            a.set, a.size = a.set | _SIZE, _number(size, "size")
        if mtime is not None:
            a.set, a.mtime = a.set | _MTIME, mtime
        if user is not None:
            if len(user) > USER_MAX:
                raise ValueError(f"user: {len(user)} bytes; {USER_MAX} are the most")
            a.set, a.user_len = a.set | _USER, len(user)
            ctypes.memmove(a.user, user, len(user))
        self._call("osetattr", _number(oid), ctypes.byref(a))

    def __iter__(self) -> Iterator[int]:
        """The numbers of all objects, in no order."""
        cursor, oid = ctypes.c_uint64(0), ctypes.c_uint64()
        while self._call("oftl_next", ctypes.byref(cursor), ctypes.byref(oid)):
            yield oid.value
