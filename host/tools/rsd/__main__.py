"""Entry point of `python -m rsd`."""

import sys

if __name__ == "__main__":
    try:
        from rsd.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main(sys.argv[1:]))
