# SPDX-License-Identifier: GPL-2.0-or-later
"""A headless Chromium, driven through chromedriver's WebDriver protocol."""

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromedriver")
PATIENCE_S = 60

# Chromium asks its maker for news otherwise. Root, as in a container, has no sandbox.
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)


def missing() -> list[str]:
    return [name for name in PROGRAMS if shutil.which(name) is None]


@dataclass(frozen=True)
class Browser:
    """One window. `url` is that of the session."""

    url: str

    def call(self, method: str, path: str, body: object = None) -> Any:
        return _call(method, self.url + path, body)

    def devtools(self, command: str, **parameters: object) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def show(self, width: int, height: int, *, dark: bool) -> None:
        """Be a screen of this size, whose owner prefers this scheme."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, where: str | Path) -> None:
        address = where.absolute().as_uri() if isinstance(where, Path) else where
        self.call("POST", "/url", {"url": address})

    def run(self, script: str, *arguments: object) -> Any:
        """What the body of a function returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: object) -> Any:
        """The same, when it is true."""
        return until(lambda: self.run(script, *arguments), script)

    def complaints(self) -> list[str]:
        """What stands in the console, of errors and warnings, since the last time."""
        found = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

    def fetched(self) -> list[str]:
        """The addresses of all that was asked for since the last time, the page itself included.

        Left out is what the page's own policy kept the browser from asking for.
        """
        found = self.call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in found]
        asked, kept_back = {}, set()
        for message in messages:
            what = message["params"]
            if message["method"] == "Network.requestWillBeSent":
                asked[what["requestId"]] = what["request"]["url"]
            elif message["method"] == "Network.loadingFailed" and what.get("blockedReason"):
                kept_back.add(what["requestId"])
        return [url for number, url in asked.items() if number not in kept_back]


def until(found: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.1)
    return value


@contextlib.contextmanager
def start(log: Path) -> Iterator[Browser]:
    """A browser with nothing open; `log` is a file for chromedriver's messages."""
    with log.open("wb") as stream:
        process = subprocess.Popen(["chromedriver", "--port=0"], stdout=stream, stderr=stream)
    try:
        match = until(
            lambda: re.search(r"successfully on port (\d+)", log.read_text()), "chromedriver"
        )
        options = {
            "args": list(SWITCHES),
            "binary": shutil.which("chromium"),
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        root = f"http://127.0.0.1:{match[1]}/session"
        session = _call("POST", root, {"capabilities": {"alwaysMatch": wanted}})
        browser = Browser(f"{root}/{session['sessionId']}")
        try:
            yield browser
        finally:
            browser.call("DELETE", "")
    finally:
        process.terminate()
        process.wait()


def _call(method: str, url: str, body: object) -> Any:
    data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from error
