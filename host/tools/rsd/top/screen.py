# SPDX-License-Identifier: GPL-2.0-or-later
"""A view in a terminal."""

import time
from collections.abc import Callable

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table as RichTable
from rich.text import Text

from rsd.top.view import Table, View


def drawn(shown: View) -> Group:
    """The tables side by side, as far as there is room."""
    return Group(Text(shown.title, style="bold"), Columns([_table(t) for t in shown.tables]))


def _table(table: Table) -> RichTable:
    drawing = RichTable(title=table.title, title_justify="left", box=None, pad_edge=False)
    for number, head in enumerate(table.heads):
        drawing.add_column(head, justify="right" if number and head else "left", no_wrap=True)
    for row in table.rows:
        drawing.add_row(*row)
    return drawing


def once(shown: View) -> None:
    Console(highlight=False).print(drawn(shown))


def follow(next_view: Callable[[], View | None], every_s: float) -> None:
    """Draw views until there are none, over each other."""
    shown = next_view()
    with Live(screen=True, auto_refresh=False) as live:
        while shown is not None:
            live.update(drawn(shown), refresh=True)
            time.sleep(every_s)
            shown = next_view()
