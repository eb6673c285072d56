"""What can go wrong, by kind. The text of each is the library's own, whole."""

from typing import Any, Optional


class Error(Exception):
    """Any failure of the library.

    `code` is the status's name, such as ``"SB_ERR_MALFORMED"``; `offset` is where in the bytes or
    the file, if that is known; `device_code` is the device driver's own number, or ``errno``;
    `filename` is the file of a call that was given a path.
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
    """An argument that can never be right, or not of this blob."""


class DtypeError(ArgumentError, TypeError):
    """An element type that does not fit."""


class RangeError(ArgumentError, IndexError):
    """An index, axis, layer or blob that is not there."""


class UnsupportedError(ArgumentError):
    """Not offered for this type, file or device."""


class DataError(Error, ValueError):
    """Bytes that are not what they should be."""


class LimitError(DataError):
    """Bytes that ask for more than a limit allows."""


class OutOfMemoryError(Error, MemoryError):
    """Memory is short."""


class DeviceError(Error, RuntimeError):
    """No device, or one that failed."""


class FileError(Error, OSError):
    """A file cannot be read or written; `errno` says why."""

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.errno = self.device_code
        self.strerror = message


class MissingFileError(FileError, FileNotFoundError):
    """There is no such file."""


class ForbiddenFileError(FileError, PermissionError):
    """The file may not be read or written."""
