"""The `./rsd` command: set-up, guests, comparisons, tests."""

__version__ = "0.1.0"
