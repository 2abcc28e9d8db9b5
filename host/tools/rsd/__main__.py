"""Entry point of `python -m rsd`."""

import sys

from rsd.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
