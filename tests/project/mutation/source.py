"""Where things lie in a source: offsets of what was written in the file itself."""

import ctypes
import re

from clang import cindex


def _file_offset(location):
    """(file, offset) where it was written: a macro's argument there, all else of a macro where it
    is used. libclang has the function, its Python does not."""
    function = cindex.conf.lib.clang_getFileLocation
    function.argtypes = [cindex.SourceLocation] + 4 * [ctypes.c_void_p]
    file, offset = ctypes.c_void_p(), ctypes.c_uint()
    function(location, ctypes.byref(file), None, None, ctypes.byref(offset))
    return file.value, offset.value


class Source:
    """The text of a file and of its nodes. ASCII, so that a byte is a character."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = [m.end() for m in re.finditer("\n", text)]

    def line(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def span(self, node):
        """(start, end), or None: its ends lie in two files, or in the wrong order."""
        first, start = _file_offset(node.extent.start)
        last, end = _file_offset(node.extent.end)
        return (start, end) if first == last and start < end else None

    def words(self, span):
        """In one line, without comments: to name a mutant and to compare."""
        text = re.sub(r"/\*.*?\*/", " ", self.text[span[0]:span[1]], flags=re.S)
        return re.sub(r"\s+", " ", text).strip()

    def between(self, left, right):
        """What stands between two spans."""
        return self.words((left[1], right[0])) if left[1] <= right[0] else None

    def is_whole(self, span):
        """Every bracket that it opens it closes."""
        depth, code = 0, re.sub(r"'(?:\\.|[^'\\])'|\"(?:\\.|[^\"\\])*\"", "", self.words(span))
        for sign in code:
            depth += (sign in "([{") - (sign in ")]}")
            if depth < 0:
                return False
        return depth == 0
