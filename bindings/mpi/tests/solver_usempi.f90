! By `use mpi` and the module of regions.
program solver_usempi
  use mpi
  use sapwood_region
  implicit none
  include 'solver_calls.inc'
end program solver_usempi
