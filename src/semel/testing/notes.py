"""A test that the committed note on a guarded job still says what the code does."""

from __future__ import annotations

import importlib
from pathlib import Path


def assert_note_is_current(path: str | Path) -> None:
    """Fail, with what differs, where a note that `semel note` wrote is not what it would write now.

    The note says itself which job it is on, and how it was asked for. Nothing is connected to: what was measured is not
    compared.
    """
    from semel.note.checking import compare_to
    from semel.note.origin import read_origin
    from semel.note.writing import write_note

    __tracebackhide__ = True
    file = Path(path)
    if not file.exists():
        raise AssertionError(f"There is no note {file}: semel note MODULE:NAME --output {file}")
    written = file.read_text("utf-8")
    origin = read_origin(written)
    if origin is None:
        raise AssertionError(
            f"{file} is no note that semel wrote: its first line does not say what it is on."
        )
    module, _, names = origin.target.partition(":")
    found: object = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise AssertionError(f"{file} is on {origin.target}, which is not there any more.")
    difference = compare_to(file.name, written, write_note(origin, found))
    if difference:
        raise AssertionError(
            f"{file} is not current. Write it anew ({origin.command()} --output {file}), and read what changed:\n{difference}"
        )
