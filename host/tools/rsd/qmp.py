"""The little of QMP that a run needs: which events QEMU reported."""

import json
import socket


class EventReader:
    """Collects the names of QEMU's events. We own `sock`, a non-blocking socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = b""
        self.events: list[str] = []
        sock.setblocking(False)
        # QEMU holds events back until it is told what we can do; it reads this when it
        # starts, so there is nothing to wait for.
        sock.send(b'{"execute": "qmp_capabilities"}\n')

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
                    self.events.append(message["event"])
