"""Print the requirements of one dependency group of pyproject.toml, one a line: ``dependency_group.py dev``."""

import sys
import tomllib
from pathlib import Path


def main(group: str) -> None:
    """Print the group; a name that is not there is a KeyError that shows it."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
    print("\n".join(project["dependency-groups"][group]))


if __name__ == "__main__":
    main(sys.argv[1])
