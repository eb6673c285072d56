"""The exceptions, one class for each kind of failure, with the library's messages."""

from typing import Any, Optional


class Error(Exception):
    """The base class of all failures of the library.

    `code` is the C status, such as ``"SB_ERR_MALFORMED"``. `offset` is the error's position in the
    bytes or in the file, if known. `device_code` is the device driver's error number, or ``errno``.
    `filename` is the path that was passed to the call.
    """

    def __init__(self, message: str = "", *, code: str = "", offset: Optional[int] = None,
                 device_code: Optional[int] = None, filename: Optional[str] = None) -> None:
        super().__init__(message)
        self.code = code
        self.offset = offset
        self.device_code = device_code
        self.filename = filename

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        names = "code", "offset", "device_code", "filename"
        details = {name: getattr(self, name) for name in names}
        return _again, (type(self), str(self), details), self.__dict__


def _again(kind: type[Error], message: str, details: dict[str, Any]) -> Error:
    return kind(message, **details)


class ArgumentError(Error, ValueError):
    """An argument that is always invalid, or invalid for this blob."""


class DtypeError(ArgumentError, TypeError):
    """An element type that is unknown, or wrong for the call."""


class RangeError(ArgumentError, IndexError):
    """An index, axis, layer or blob that does not exist."""


class UnsupportedError(ArgumentError):
    """An operation that this type, file or device does not support."""


class DataError(Error, ValueError):
    """Malformed or invalid bytes."""


class LimitError(DataError):
    """Bytes that require more than a limit allows."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""


class DeviceError(Error, RuntimeError):
    """There is no device, or the device failed."""


class FileError(Error, OSError):
    """A file cannot be read or written. `errno` is the reason."""

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.errno = self.device_code
        self.strerror = message


class MissingFileError(FileError, FileNotFoundError):
    """The file does not exist."""


class ForbiddenFileError(FileError, PermissionError):
    """The file may not be read or written."""
