"""The `./rsd` command: set-up, guests, comparisons, tests."""
