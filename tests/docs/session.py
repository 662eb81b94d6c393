"""A Python session for the blocks of one page: takes a block a line (JSON), answers what it printed and raised.

Names live on from block to block; ``await`` works outside of functions, on one event loop.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys
import traceback
from typing import Any


def main() -> None:
    answers = sys.stdout
    sys.path.insert(0, "")
    names: dict[str, Any] = {"__name__": "page"}
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            asked = json.loads(line)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                raised = run(asked, names, runner)
            print(json.dumps({"printed": printed.getvalue(), "raised": raised}), file=answers, flush=True)


def run(asked: dict[str, str], names: dict[str, Any], runner: asyncio.Runner) -> list[str] | None:
    try:
        code = compile(asked["text"], asked["place"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, names))
        else:
            exec(code, names)
    except BaseException as error:
        return [type(error).__name__, "".join(traceback.format_exception(error))]
    return None


main()
