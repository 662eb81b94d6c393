"""Scripts of several statements, taken apart where other tools want them one by one."""

from __future__ import annotations

import re

_PIECES = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<quoted>'(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      | (?P<end>;)""",
    re.VERBOSE | re.DOTALL,
)


def split(script: str) -> list[str]:
    """The statements of ``script``, without their semicolons; each keeps the comments that stand before it.

    Semicolons in strings, quoted names, comments and dollar-quoted bodies end nothing. A comment after the
    last statement is dropped.
    """
    statements, start, empty, position = [], 0, True, 0
    for piece in _PIECES.finditer(script):
        empty = empty and not script[position : piece.start()].strip() and piece["quoted"] is None
        position = piece.end()
        if piece["end"] is not None:
            if not empty:
                statements.append(script[start : piece.start()].strip())
            start, empty = position, True
    if not empty or script[position:].strip():
        statements.append(script[start:].strip())
    return statements


def without_comments(statement: str) -> str:
    """``statement`` without its comments, apart from those inside a dollar-quoted body."""

    def one(piece: re.Match[str]) -> str:
        return "" if piece["comment"] is not None else piece[0]

    return _PIECES.sub(one, statement).strip()
