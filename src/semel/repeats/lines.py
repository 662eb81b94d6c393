"""A file's lines, decompressed and decoded, with a limit on each: what does not fit is noted or refused by its number."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from semel.errors import ConfigurationError
from semel.repeats.problems import Problems

LONGEST: Final = 16 * 1024 * 1024
"""A line of more letters is refused: a record of this size is none."""
_HEAD: Final = 64 * 1024
_BAD = re.compile("[\udc80-\udcff\ufffd]")
_DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, OSError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Text:
    """An open file: how it begins, and all of it as text."""

    head: str
    """Its first letters, to tell what it is."""
    stream: IO[str]


@contextmanager
def open_text(path: str, encoding: str | None) -> Iterator[Text]:
    """The file, or standard input for ``-``. gzip, bzip2, xz and zstd are told by their first bytes."""
    with ExitStack() as ended:
        try:
            raw = sys.stdin.buffer if path == "-" else ended.enter_context(Path(path).open("rb"))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigurationError(f"{path!r} cannot be read: {why}.", remedy="Check the path.") from error
        plain = _decompressed(_buffered(raw), path)
        start = _peek(plain)
        chosen = _encoding(start, encoding)
        errors = "replace" if chosen.startswith(("utf-16", "utf-32")) else "surrogateescape"
        try:
            stream = io.TextIOWrapper(plain, encoding=chosen, errors=errors, newline="\n")
            head = start.decode(chosen, errors)
        except LookupError:
            raise ConfigurationError(
                f"There is no encoding {chosen!r}.", remedy="For example utf-8, latin-1, utf-16."
            ) from None
        yield Text(head, stream)
        if path == "-":
            stream.detach()


def read_lines(text: Text, problems: Problems) -> Iterator[str]:
    """Every line with its end. One that is too long comes as an empty one, so that numbers stay right."""
    readline, number = text.stream.readline, 0
    while True:
        try:
            line = readline(LONGEST)
            number += 1
            if len(line) == LONGEST and not line.endswith("\n"):
                problems.add("too-long", number)
                while line and not line.endswith("\n"):
                    line = readline(LONGEST)
                yield "\n"
                continue
        except _DAMAGED:
            problems.add("truncated", number + 1)
            return
        if not line:
            return
        if not line.isascii() and _BAD.search(line):
            problems.add("encoding", number)
        if "\0" in line:
            problems.add("nul", number)
        yield line


def _buffered(raw: IO[bytes]) -> io.BufferedReader:
    return raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw))


def _decompressed(raw: io.BufferedReader, path: str) -> io.BufferedReader:
    start = raw.peek(8)[:8]
    opened: Any = raw
    if start.startswith(b"\x1f\x8b"):
        opened = gzip.GzipFile(fileobj=raw)
    elif start.startswith(b"BZh"):
        opened = bz2.BZ2File(raw)
    elif start.startswith(b"\xfd7zXZ\0"):
        opened = lzma.LZMAFile(raw)  # noqa: SIM115
    elif start.startswith(b"\x28\xb5\x2f\xfd"):
        opened = _zstd(raw, path)
    return opened if opened is raw else io.BufferedReader(opened, _HEAD)


def _zstd(raw: IO[bytes], path: str) -> Any:
    """By Python's own reader (3.14) or the package zstandard, where one is there."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return zstd.ZstdFile(raw)
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ConfigurationError(
            f"{path!r} is compressed by zstd, which this Python cannot read.",
            remedy=f"Run: zstd -dc {path} | semel repeats - …   or: pip install zstandard",
        ) from None
    return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)


def _peek(plain: io.BufferedReader) -> bytes:
    try:
        return plain.peek(_HEAD)[:_HEAD]
    except _DAMAGED:
        return b""


def _encoding(start: bytes, given: str | None) -> str:
    """As given; else by the mark at the beginning, else UTF-8."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and (given or "utf-16").lower().startswith("utf-16"):
        return "utf-16"
    if start.startswith(b"\xef\xbb\xbf") and (given or "utf-8").lower() in ("utf-8", "utf8"):
        return "utf-8-sig"
    return given or "utf-8"
