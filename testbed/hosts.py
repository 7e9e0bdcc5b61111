"""The inside of a host: names, processes and a file system of its own, and an sshd if wanted.

A host's first process runs in namespaces of its own for the hostname, process numbers, shared
memory and mounts: it has its own /tmp, /run and /dev/shm, and its end is the end of all processes
in it. The rest of the file system is shared, like a cluster's home. A host with processors of its own
is a machine of its own also to programs that ask the kernel. A bare host has none of this and is only a network.
"""

import os
import shutil
import subprocess
import time
import uuid

import network
import processors

STATE = os.environ.get("TESTBED_STATE", "/run/testbed")
START_DEADLINE_SECONDS = 30.0
SSH_PORT_HEX = ":0016"
LISTENING = "0A"

# A log-in among many, on hosts with a hundredth of a processor, takes minutes.
LOG_IN_SECONDS_MAX = 600

# $1 host, $2 state folder, $3 whether to start sshd, $4 its control group or nothing. The state stays visible below the private /run.
INIT = r"""#!/bin/sh
set -eu
host=$1; state=$2
[ -z "$4" ] || echo 0 >"$4"
hostname "$host"
mount --bind "$state/hosts" /etc/hosts
mount --bind "$state/hostname.$host" /etc/hostname
[ -z "$4" ] || mount --bind "$state/boot_id.$host" /proc/sys/kernel/random/boot_id
# A shell of sshd's reads these; what a developer has in there is not part of the host.
for file in "$HOME/.bashrc" "$HOME/.profile" "$HOME/.bash_profile"; do
    [ ! -f "$file" ] || mount --bind /dev/null "$file"
done
[ ! -d /etc/ssh/ssh_config.d ] || mount --bind "$state/ssh_config.d" /etc/ssh/ssh_config.d
mkdir -p "$state/mount.$host"
for folder in /tmp /run /dev/shm; do
    mount -t tmpfs -o mode=1777 tmpfs "$state/mount.$host"
    case "$state/" in "$folder"/*)
        mkdir -p "$state/mount.$host/${state#"$folder"/}"
        mount --bind "$state" "$state/mount.$host/${state#"$folder"/}" ;;
    esac
    mount -n --move "$state/mount.$host" "$folder"
done
if [ "$3" = 1 ]; then
    mkdir -p /run/sshd
    chmod 755 /run/sshd
    /usr/sbin/sshd -f "$state/sshd_config" -E "$state/log/sshd.$host"
fi
: >"$state/started.$host"
# The shell stays as the first process, which reaps those that have lost their parent.
sleep infinity & wait
"""


def write(path, text, mode=0o644):
    """Writes a file of the state."""
    with open(os.path.join(STATE, path), "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(os.path.join(STATE, path), mode)


def prepare(count, has_sshd, share):
    """Writes what all hosts share, and limits their processors if they have a share of their own."""
    names = [network.name(index) for index in range(count)]
    for folder in ("log", "ssh_config.d"):
        os.makedirs(os.path.join(STATE, folder))
    table = "".join(f"{network.address(index)} {host}\n" for index, host in enumerate(names))
    write("hosts", "127.0.0.1 localhost\n" + table)
    write("init", INIT, 0o755)
    for host in names:
        write(f"hostname.{host}", host + "\n")
    if share:
        processors.limit(names, share)
        for host in names:
            write(f"boot_id.{host}", f"{uuid.uuid4()}\n")
    if has_sshd:
        prepare_ssh(LOG_IN_SECONDS_MAX if share else 10)


def prepare_ssh(connect_seconds):
    """One key for all hosts and one for their users: a test bed trusts only itself."""
    if not os.path.exists("/usr/sbin/sshd"):
        raise OSError("there is no sshd; install the package openssh-server")
    for key in ("identity", "host_key"):
        path = os.path.join(STATE, key)
        network.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path)
    shutil.copy(os.path.join(STATE, "identity.pub"), os.path.join(STATE, "authorized_keys"))
    with open(os.path.join(STATE, "host_key.pub"), encoding="utf-8") as file:
        write("known_hosts", "* " + " ".join(file.read().split()[:2]) + "\n")
    server = {
        "Port": 22,
        "HostKey": f"{STATE}/host_key",
        "AuthorizedKeysFile": f"{STATE}/authorized_keys",
        "StrictModes": "no",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
        "PermitRootLogin": "yes",
        "UseDNS": "no",
        "PidFile": "none",
        "PrintMotd": "no",
        "PrintLastLog": "no",
        "MaxStartups": "1000:30:2000",
        "MaxSessions": 1000,
        "LoginGraceTime": LOG_IN_SECONDS_MAX,
        "Subsystem": "sftp internal-sftp",
    }
    client = {
        "IdentityFile": f"{STATE}/identity",
        "UserKnownHostsFile": f"{STATE}/known_hosts",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "LogLevel": "ERROR",
        "ConnectTimeout": connect_seconds,
    }
    write("sshd_config", "".join(f"{key} {value}\n" for key, value in server.items()))
    write("ssh_config.d/testbed.conf", "Host *\n" + "".join(f" {k} {v}\n" for k, v in client.items()))


def begin(host, has_sshd):
    """Starts a host's first process; `wait_for` says when it is through."""
    started = os.path.join(STATE, f"started.{host}")
    if os.path.exists(started):
        os.remove(started)
    with open(os.path.join(STATE, "log", f"init.{host}"), "a", encoding="utf-8") as log:
        return subprocess.Popen(
            ["nsenter", f"--net={network.NAMESPACES}{network.PREFIX}{host}", "unshare", "--uts", "--pid"]
            + ["--ipc", "--mount", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
            + ["sh", os.path.join(STATE, "init"), host, STATE, str(int(has_sshd)), processors.group_of(host) or ""],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def wait_for(host, process, has_sshd):
    """Waits until a host has started, and its sshd takes connections."""
    until = time.monotonic() + START_DEADLINE_SECONDS
    while not os.path.exists(os.path.join(STATE, f"started.{host}")) or has_sshd and not listens(host):
        if process.poll() is not None or time.monotonic() > until:
            with open(os.path.join(STATE, "log", f"init.{host}"), encoding="utf-8") as log:
                raise OSError(f"{host} has not started: {log.read().strip() or 'no reason given'}")
        time.sleep(0.005)
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as children:
        write(f"first.{host}", children.read().split()[0] + "\n")


def listens(host):
    """Whether something listens at the port of ssh in the host's namespace."""
    for pid in network.processes(network.PREFIX + host)[:1]:
        with open(f"/proc/{pid}/net/tcp", encoding="utf-8") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        return any(row[1].endswith(SSH_PORT_HEX) and row[3] == LISTENING for row in rows)
    return False


def first_process(host):
    """The number of a host's first process; none if the host is bare or down."""
    try:
        with open(os.path.join(STATE, f"first.{host}"), encoding="utf-8") as file:
            pid = int(file.read())
    except (OSError, ValueError):
        return None
    return pid if pid in network.processes(network.PREFIX + host) else None


def enter(host, words):
    """Becomes a program inside a host."""
    space = network.namespace(host)
    pid = first_process(host)
    processors.enter(host)
    if pid:
        spaces = ["--uts", "--pid", "--ipc", "--mount", "--net", "--wd=/"]
        os.execvp("nsenter", ["nsenter", "-t", str(pid), *spaces, *words])
    os.execvp("nsenter", ["nsenter", f"--net={network.NAMESPACES}{space}", *words])


# $1 state folder; then the command. Only what a log-in node has: names, and the key.
LOGIN = r"""set -eu
state=$1; shift
mount --bind "$state/hosts" /etc/hosts
[ ! -d /etc/ssh/ssh_config.d ] || mount --bind "$state/ssh_config.d" /etc/ssh/ssh_config.d
exec "$@"
"""


def log_in(words):
    """Becomes a program on this machine that knows the hosts by name and may log in to them."""
    if not os.path.isdir(os.path.join(STATE, "ssh_config.d")):
        raise LookupError("bare hosts have no names to log in to: run 'testbed up N --sshd' first")
    processors.enter(processors.LOGIN)
    space = ["unshare", "--mount", "--propagation", "private", "sh", "-c", LOGIN, "login", STATE]
    os.execvp(space[0], [*space, *words])
