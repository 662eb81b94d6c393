"""The recording in docs/transcript.txt is what semel does today, and the README quotes it."""

from __future__ import annotations

import subprocess
import sys

from tests.docs.pages import ROOT, read_blocks

RECORDER = ROOT / "scripts" / "record_transcript.py"


def recorded() -> str:
    return (ROOT / "docs" / "transcript.txt").read_text("utf-8")


def test_recording_it_again_gives_the_same() -> None:
    done = subprocess.run(
        [sys.executable, str(RECORDER), "--print"], capture_output=True, text=True, timeout=350, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == recorded(), f"record it anew: python {RECORDER.relative_to(ROOT)}"


def test_the_readme_quotes_it() -> None:
    quotes = [block for block in read_blocks(ROOT / "README.md") if "transcript" in block.said]
    assert len(quotes) >= 2
    for quote in quotes:
        assert quote.text in recorded(), quote.place


def test_it_names_no_path_of_the_machine() -> None:
    assert "/tmp/" not in recorded()
    assert str(ROOT) not in recorded()
