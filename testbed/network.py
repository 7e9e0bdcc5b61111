"""The network of the test bed: namespaces, one bridge, and what is done to links.

Each host is a network namespace with an `eth0`. The other ends of these are ports of a bridge that
lives in a namespace of its own, so that the machine itself only gets one interface more, by which
it reaches the hosts and they reach it. All names begin with `testbed-`: what is left of a test bed
is found by that, whatever became of its state.
"""

import glob
import os
import shutil
import signal
import socket
import subprocess
import time

PREFIX = "testbed-"
SWITCH = PREFIX + "switch"
LOGIN = PREFIX + "login"
NAMESPACES = "/run/netns/"
LOGIN_ADDRESS = "10.77.255.254"
PREFIX_LENGTH = 16
HOSTS_MAX = 1000
# An empty network namespace is deleted at once; a process that ends may hold it a little longer.
END_DEADLINE_SECONDS = 10.0


def name(index):
    """The host's name."""
    return f"node{index:02d}"


def address(index):
    """The host's address: 10.77.1.1 is the first."""
    return f"10.77.{index // 250 + 1}.{index % 250 + 1}"


def run(*words, **options):
    """Runs a program; its own words become the error's text."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().replace("\n", "; ")
        raise OSError(f"{' '.join(words)}: {why or f'exit code {done.returncode}'}")
    return done.stdout


def ip(lines, namespace=None):
    """Runs many commands of `ip` in one process."""
    where = ["-n", namespace] if namespace else []
    if lines:
        run("ip", *where, "-batch", "-", input="\n".join(lines) + "\n")


def existing():
    """The hosts that there are, in order."""
    found = (os.path.basename(path) for path in glob.glob(NAMESPACES + PREFIX + "node*"))
    return sorted((space[len(PREFIX) :] for space in found), key=lambda host: int(host[4:]))


def namespace(host):
    """The namespace of a host, which has to be there."""
    if not os.path.exists(NAMESPACES + PREFIX + host):
        raise LookupError(f"there is no host '{host}'; see 'testbed list'")
    return PREFIX + host


def build(count):
    """Builds the bridge and the hosts' links to it."""
    hosts = [name(index) for index in range(count)]
    ip([f"netns add {PREFIX}{host}" for host in hosts] + [f"netns add {SWITCH}"])
    ip(
        [
            f"link add {LOGIN} type veth peer name login netns {SWITCH}",
            f"addr add {LOGIN_ADDRESS}/{PREFIX_LENGTH} dev {LOGIN}",
            f"link set {LOGIN} up",
        ]
    )
    ports = ["login"] + hosts
    ip(
        [
            "link add br0 type bridge",
            "link set br0 type bridge stp_state 0 mcast_snooping 0",
            "link set br0 up",
        ]
        + [f"link add {host} type veth peer name eth0 netns {PREFIX}{host}" for host in hosts]
        + [line for port in ports for line in (f"link set {port} master br0", f"link set {port} up")],
        SWITCH,
    )
    for index, host in enumerate(hosts):
        eth0 = f"addr add {address(index)}/{PREFIX_LENGTH} dev eth0"
        ip(["link set lo up", eth0, "link set eth0 up"], PREFIX + host)


def build_wan(count, configuration, state):
    """Builds hosts whose packets go through `wanem`, which holds them back as a long line would."""
    names = [name(index) for index in range(count)]
    ip([f"netns add {PREFIX}{host}" for host in names] + [f"netns add {SWITCH}"])
    program = os.path.join(state, "wanem")
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "wanem.c")
    run("cc", "-O2", "-o", program, source)
    nodes = "".join(f"{PREFIX}{host} {address(index)}\n" for index, host in enumerate(names))
    with open(os.path.join(state, "wan.nodes"), "w", encoding="utf-8") as file:
        file.write(nodes)
    shutil.copy(configuration, os.path.join(state, "wan.conf"))
    with open(os.path.join(state, "wanem.log"), "w", encoding="utf-8") as log:
        # It lives in the switch's namespace, by which it is found and ended.
        process = subprocess.Popen(
            ["nsenter", f"--net={NAMESPACES}{SWITCH}", program, f"{state}/wan.nodes", f"{state}/wan.conf"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    until = time.monotonic() + END_DEADLINE_SECONDS
    while True:
        with open(os.path.join(state, "wanem.log"), encoding="utf-8") as log:
            said = log.read()
        if "ready" in said:
            break
        if process.poll() is not None or time.monotonic() > until:
            raise OSError(f"the network between sites does not start: {said.strip()}")
        time.sleep(0.005)
    with open(os.path.join(state, "wanem.pid"), "w", encoding="utf-8") as file:
        file.write(f"{process.pid}\n")


def tell_wan(state):
    """Has `wanem` read its configuration again; none if hosts hang at a bridge."""
    try:
        with open(os.path.join(state, "wanem.pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGHUP)
    except FileNotFoundError:
        raise LookupError("the hosts are not in sites; first 'testbed up N --wan FILE'") from None


def configure_wan(configuration, state):
    """Puts the hosts into other sites, or gives the lines other qualities."""
    known = os.path.join(state, "wan.conf")
    if os.path.exists(known):
        shutil.copy(configuration, known)
    tell_wan(state)


def processes(space):
    """The processes that live in a namespace, whatever their starter and parent are."""
    wanted = os.stat(NAMESPACES + space).st_ino
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}/ns/net").st_ino == wanted:
                    found.append(int(entry))
            except OSError:
                pass  # It has ended.
    return found


def signal_all(space, number):
    """Signals every process of a namespace."""
    for pid in processes(space):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def kill_all(space):
    """Ends every process of a namespace, also those that are being started meanwhile."""
    until = time.monotonic() + END_DEADLINE_SECONDS
    while processes(space):
        signal_all(space, signal.SIGKILL)
        if time.monotonic() > until:
            raise TimeoutError(f"{space}: processes {processes(space)} do not end")
        time.sleep(0.002)


def set_link(host, is_up):
    """Plugs a host in or out at its port of the bridge, or of what is in its place."""
    namespace(host)
    state = os.environ.get("TESTBED_STATE", "/run/testbed")
    if os.path.exists(os.path.join(state, "wanem.pid")):
        with open(os.path.join(state, "wan.conf"), "a", encoding="utf-8") as file:
            file.write(f"{'heal' if is_up else 'cut'} {int(host[4:])}\n")
        return tell_wan(state)
    return run("ip", "-n", SWITCH, "link", "set", host, "up" if is_up else "down")


def reset(host):
    """Aborts all TCP connections of a host; both sides see a reset."""
    run("nsenter", f"--net={NAMESPACES}{namespace(host)}", "ss", "-K", "-H", "-t", "state", "connected")


def shape(host, megabits, queue_milliseconds):
    """Limits what a host sends and receives, or lifts the limit if it is 0."""
    sides = ((namespace(host), "eth0"), (SWITCH, host))
    for space, device in sides:
        prefix = ["tc", "-n", space, "qdisc"]
        if megabits:
            # The bucket must hold what one timer tick lets through, and a whole packet.
            burst = max(4000, int(megabits * 1e6 / 8 * 0.004))
            limit = ["rate", f"{megabits}mbit", "burst", str(burst), "latency", f"{queue_milliseconds}ms"]
            run(*prefix, "replace", "dev", device, "root", "tbf", *limit)
        elif "tbf" in run(*prefix, "show", "dev", device):
            run(*prefix, "delete", "dev", device, "root")


def partition(groups):
    """Lets only members of one group talk to each other; hosts in no group talk to all."""
    for host in (host for group in groups for host in group):
        namespace(host)
    rules = []
    for here in groups:
        for there in groups:
            if here is not there:
                ports = [", ".join(f'"{host}"' for host in group) for group in (here, there)]
                rules.append(f"iifname {{ {ports[0]} }} oifname {{ {ports[1]} }} drop")
    hook = "type filter hook forward priority 0; policy accept;"
    lines = ["table bridge partition {", "chain forward {", hook, *rules, "}", "}"]
    join()
    packet_filter("\n".join(lines) + "\n")


def join():
    """Undoes a partition, if there is one."""
    packet_filter("table bridge partition\ndelete table bridge partition\n")


def packet_filter(text):
    """Loads rules at the bridge."""
    run("nsenter", f"--net={NAMESPACES}{SWITCH}", "nft", "-f", "-", input=text)


def has_login():
    """Whether this namespace has the interface to the hosts; /sys may show the interfaces of another one."""
    return LOGIN in (name for _, name in socket.if_nameindex())


def remove():
    """Ends all processes of all hosts and removes every trace of the network."""
    spaces = [os.path.basename(path) for path in glob.glob(NAMESPACES + PREFIX + "*")]
    for space in spaces:
        kill_all(space)
    ip([f"netns delete {space}" for space in spaces])
    # It went with the switch, unless that was never built.
    until = time.monotonic() + END_DEADLINE_SECONDS
    while has_login():
        subprocess.run(["ip", "link", "delete", LOGIN], capture_output=True, check=False)
        if time.monotonic() > until:
            raise TimeoutError(f"the interface {LOGIN} does not go away")
    return len(spaces)
