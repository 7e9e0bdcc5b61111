#!/bin/sh
# A command on every node of a Flux allocation, folded: flux.sh NODES COMMAND...
#
# To be run inside of an instance (`flux alloc -N 16 flux.sh 16 uname -r`), in a folder that all nodes see.
# Flux numbers its tasks in FLUX_TASK_RANK. It is no Debian package and was not run here.
set -eu

nodes=$1
shift
program=${SAPWOOD:-sapwood}
join=$PWD/.sapwood-join-$$

flux run --nodes="$nodes" --ntasks="$nodes" --env=SAPWOOD_JOIN="$join" "$program-node" agent &
managed=$!
code=0
"$program" run --join "$join" -b -n -w "task[0-$((nodes - 1))]" "$@" || code=$?
wait "$managed"
exit "$code"
