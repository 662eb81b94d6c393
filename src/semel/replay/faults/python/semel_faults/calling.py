"""A worker for jobs that have none: takes deliveries from a socket, and calls a function or runs a command for each."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from .reporting import Reporter

Call = Callable[[str, dict[str, Any]], None]


def main(address: str, kind: str, what: str) -> None:
    """``kind`` is ``function``, ``positional`` or ``command``; deliveries come one JSON line at a time. Each is answered."""
    reporter: Reporter = importlib.import_module("sitecustomize").semel_reporter
    if kind == "command":
        call = _command(json.loads(what), reporter)
    else:
        call = _function(what, reporter, positional=kind == "positional")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(address)
        with connection.makefile("rwb") as lines:
            lines.write(json.dumps({"pid": os.getpid()}).encode() + b"\n")
            lines.flush()
            for line in lines:
                told = json.loads(line)
                error = ""
                try:
                    call(told["delivery"], told["message"])
                except Exception as raised:
                    error = f"{type(raised).__name__}: {raised}"
                    print(error, file=sys.stderr, flush=True)
                lines.write(json.dumps({"done": told["delivery"], "error": error}).encode() + b"\n")
                lines.flush()


def _function(name: str, reporter: Reporter, *, positional: bool) -> Call:
    module, _, path = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)

    def call(delivery: str, message: dict[str, Any]) -> None:
        mark = reporter.begin(delivery)
        error = ""
        try:
            result = function(*message.values()) if positional else function(**message)
            if inspect.isawaitable(result):
                asyncio.run(_awaited(result))
        except Exception as raised:
            error = type(raised).__name__
            raise
        finally:
            reporter.end(delivery, mark, error=error)

    return call


async def _awaited(result: Any) -> Any:
    return await result


def _command(template: list[str], reporter: Reporter) -> Call:
    if "{" not in template[0] and shutil.which(template[0]) is None:
        sys.exit(f"there is no program {template[0]}")

    def call(delivery: str, message: dict[str, Any]) -> None:
        text = json.dumps(message)
        values = {**message, "message": text}
        command = [_filled(part, values) for part in template]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env={**os.environ, "SEMEL_REPLAY_DELIVERY": delivery},
            preexec_fn=lambda: reporter.ask("begin", delivery),
        ) as running:
            running.communicate(text.encode())
        reporter.ask("end", delivery, pid=running.pid, code=running.returncode)
        if running.returncode:
            raise RuntimeError(f"exit code {running.returncode}")

    return call


def _filled(part: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        part = part.replace("{" + name + "}", str(value))
    return part


if __name__ == "__main__":
    main(*sys.argv[1:])
