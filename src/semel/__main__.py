"""``python -m semel``: the command ``semel``."""

from semel.cli.main import main

if __name__ == "__main__":
    main()
