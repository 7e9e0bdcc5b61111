#!/bin/sh
# A command on every process that mpiexec starts, folded: mpiexec.sh RANKS COMMAND...
#
# MPIEXEC may name one of several, with options; SAPWOOD the command, beside which sapwood-node is. Both Open MPI's and MPICH's work, and
# so does srun: each numbers its processes in the environment.
set -eu

ranks=$1
shift
program=${SAPWOOD:-sapwood}
folder=$(mktemp -d "${TMPDIR:-/tmp}/sapwood-attach-XXXXXX")
trap 'rm -rf "$folder"' EXIT

# On a cluster this is a folder that all hosts see.
SAPWOOD_JOIN=$folder/join
export SAPWOOD_JOIN
# shellcheck disable=SC2086
${MPIEXEC:-mpiexec} -n "$ranks" "$program-node" agent &
managed=$!
code=0
"$program" run --join "$SAPWOOD_JOIN" -b -n -w "rank[0-$((ranks - 1))]" "$@" || code=$?
# The processes end with the tree, and the manager with its processes.
wait "$managed"
exit "$code"
