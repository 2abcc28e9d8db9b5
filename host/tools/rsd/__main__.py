"""Entry point of `python -m rsd`, and of the command that pip installs."""

import sys


def entry() -> None:
    """Run the command line; its exit status is ours."""
    try:
        from rsd.cli import main
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(main(sys.argv[1:]))


if __name__ == "__main__":
    entry()
