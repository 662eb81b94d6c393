"""``python -m semel.cli``, the same as ``semel``."""

from semel.cli.main import main

main()
