"""The little of QMP that a run needs: commands, and which events QEMU reported."""

import json
import socket
from collections.abc import Mapping


class Monitor:
    """Sends commands without waiting for them, and collects what QEMU says.

    We own `sock`, a non-blocking socket. `events` are names; that of a migration's has its status
    behind it. `errors` are descriptions of commands that were refused.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = b""
        self.events: list[str] = []
        self.errors: list[str] = []
        sock.setblocking(False)
        # QEMU holds events back until it is told what we can do. It reads this, and what follows,
        # when it starts, so there is nothing to wait for.
        self.execute("qmp_capabilities", {})

    def execute(self, command: str, arguments: Mapping[str, object]) -> None:
        """Have a command executed, after those before it."""
        words = {"execute": command, "arguments": arguments}
        self._sock.send(json.dumps(words).encode() + b"\n")

    def poll(self) -> None:
        """Read what has arrived. QEMU being gone is not an error."""
        while True:
            try:
                data = self._sock.recv(65536)
            except (BlockingIOError, ConnectionError):
                return
            if not data:
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "event" in message:
                    status = message.get("data", {}).get("status")
                    name = message["event"]
                    self.events.append(f"{name} {status}" if name == "MIGRATION" else name)
                elif "error" in message:
                    self.errors.append(message["error"]["desc"])
