"""Traces PyTorch distributed programs, without a change of the script, for `sapwood trace why`.

    sapwood trace why -- mpirun -np 4 python3 -m sapwood.torch train.py --epochs 3

`python -m sapwood.torch SCRIPT [ARGUMENTS]` runs a script as `python SCRIPT [ARGUMENTS]` does. Where a
monitor of Sapwood has started it, each process tells its leaf which call of `torch.distributed` it is in,
on which group, and how many it has made there. This package needs no other part of `sapwood` and no
library beside Python's own; docs/trace.md says what is seen.
"""
