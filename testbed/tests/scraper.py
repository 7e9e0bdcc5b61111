"""Starts Debian's Prometheus for tests, at a port of the loopback that no other program has."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.request

# How long it may take to be ready. The time is for machines with much else to do.
SECONDS_MAX = 120
# How often another program may be faster at a port.
STARTS_MAX = 5
# The state of a socket of /proc/net/tcp that listens.
LISTENS = "0A"


def free_port():
    """A port that is free now. Another program may have it before it is used."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def has_port(process, port):
    """Whether a process itself listens there: while it starts, another program may."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table][1:]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == LISTENS}
    folder = f"/proc/{process.pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                if os.readlink(os.path.join(folder, name)) in sockets:
                    return True
    return False


def is_ready(process, port):
    """Waits until it serves; false if it has ended, as it does where its port is taken."""
    until = time.monotonic() + SECONDS_MAX
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready",
                                                                  timeout=SECONDS_MAX):
            if has_port(process, port):
                return process.poll() is None
        if time.monotonic() > until:
            raise AssertionError(f"port {port} is not ready")
        time.sleep(0.05)
    return False


def start(configuration, data, begin):
    """A Prometheus with a file of its configuration and a folder for its data; gives its address.

    `begin` starts a command line as a process that ends with the test.
    """
    with tempfile.TemporaryFile() as errors:
        for _ in range(STARTS_MAX):
            port = free_port()
            process = begin([
                "prometheus", f"--config.file={configuration}", f"--web.listen-address=127.0.0.1:{port}",
                f"--storage.tsdb.path={data}", "--log.level=warn",
            ], stdout=subprocess.DEVNULL, stderr=errors)
            if is_ready(process, port):
                return f"http://127.0.0.1:{port}"
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    raise AssertionError(f"prometheus has ended {STARTS_MAX} times as soon as it was started: {said}")
