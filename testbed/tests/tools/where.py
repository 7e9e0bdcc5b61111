"""Where a tree's back-ends are: `where.py NODESET [LAUNCHER [SHELL...]]` prints the name of every host."""

import socket
import sys

import sapwood

if sys.argv[1:] == ["back-end"]:
    with sapwood.BackEnd.from_environment() as back_end:
        for request in back_end:
            back_end.reply(request, socket.gethostname())
else:
    hosts, launcher, *shell = [*sys.argv[1:], *([] if sys.argv[2:] else ["auto"])]
    worker = [sys.executable, __file__, "back-end"]
    with sapwood.Network(None, worker, hosts=hosts, launcher=launcher, remote_shell=shell or None,
                         connect_timeout=60.0) as network:
        for name in network.stream(up="concatenate").ask("", timeout=30).values[0]:
            print(name)
