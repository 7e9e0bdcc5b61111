! By way of mpif.h and without the module of regions.
program solver_mpif
  implicit none
  include 'mpif.h'
  external :: sapwood_region_begin, sapwood_region_end, sapwood_round
  include 'solver_calls.inc'
end program solver_mpif
