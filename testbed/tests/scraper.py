"""Starts Debian's Prometheus for tests, at a port of the loopback that no other program has."""

import contextlib
import socket
import subprocess
import time
import urllib.request

# How long it may take to be ready. The time is for machines with much else to do.
SECONDS_MAX = 120


def free_port():
    """A port that is free now. Another program may have it before it is used."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def is_ready(process, address):
    """Waits until it serves; false if it has ended, as it does where its port is taken."""
    until = time.monotonic() + SECONDS_MAX
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/-/ready", timeout=SECONDS_MAX):
            return True
        if time.monotonic() > until:
            raise AssertionError(f"{address} is not ready")
        time.sleep(0.05)
    return False


def start(configuration, data, begin):
    """A Prometheus with a file of its configuration and a folder for its data; gives its address.

    `begin` starts a command line as a process that ends with the test.
    """
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        port = free_port()
        process = begin([
            "prometheus", f"--config.file={configuration}", f"--web.listen-address=127.0.0.1:{port}",
            f"--storage.tsdb.path={data}", "--log.level=warn",
        ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if is_ready(process, f"http://127.0.0.1:{port}"):
            return f"http://127.0.0.1:{port}"
    raise AssertionError("prometheus ends as soon as it is started")
