# SPDX-License-Identifier: GPL-2.0-or-later
"""A view in a browser: a page that asks this process for the next one."""

import html
import http.server
from collections.abc import Callable

from rsd.errors import RsdError
from rsd.top.view import Table, View

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>rsd top</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 1rem; }}
h1 {{ font-size: 1.1rem; overflow-wrap: anywhere; }}
#view {{ display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }}
.table {{ overflow-x: auto; max-width: 100%; }}
caption {{ font-weight: bold; text-align: left; }}
th, td {{ padding: 0 .8em 0 0; text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }}
th:first-child, td:first-child, td:last-child {{ text-align: left; }}
</style>
</head>
<body>
<main id="view">{tables}</main>
<script>
const view = document.getElementById("view");
async function next() {{
  let text;
  try {{
    const answer = await fetch("view");
    text = answer.ok ? await answer.text() : null;
  }} catch {{
    text = null;
  }}
  if (text === null) {{
    const word = document.createElement("p");
    word.textContent = "The run has ended.";
    view.before(word);
    return;
  }}
  view.innerHTML = text;
  setTimeout(next, {every_ms});
}}
setTimeout(next, {every_ms});
</script>
</body>
</html>
"""


def drawn(shown: View) -> str:
    """The tables as HTML."""
    return f"<h1>{html.escape(shown.title)}</h1>" + "".join(map(_table, shown.tables))


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in table.heads)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="table"><table><caption>{html.escape(table.title)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def server(
    next_view: Callable[[], View | None], every_s: float, port: int
) -> http.server.HTTPServer:
    """A server for this machine alone. Browsers share the looks: one at a time is served."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path not in ("/", "/view"):
                self.send_error(404)
                return
            shown = next_view()
            if shown is None:
                self.send_error(410, "The run has ended")
                return
            text = drawn(shown)
            if self.path == "/":
                text = PAGE.format(tables=text, every_ms=round(every_s * 1000))
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None:
            """Say nothing: the terminal is the user's."""

    try:
        return http.server.HTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise RsdError(f"--serve {port}: {error.strerror}", "name another port") from error
