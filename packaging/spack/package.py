"""The recipe of Sapwood for Spack.

Not run by the tests: they have no Spack. It calls `make install`, which they do run. Lies in a repository of recipes as
packages/sapwood/package.py; `spack install sapwood ^openmpi` then builds the commit that `git` names below.
"""

from spack.package import *


class Sapwood(MakefilePackage):
    """A tree of processes that asks every process of a job, brings back one merged answer, and names missing ones."""

    # The address of the repository that this recipe came with.
    git = "."

    license("Apache-2.0 OR MIT", checked_by="sapwood")

    version("main", branch="main")

    variant("openmpi", default=True, description="The shim of `sapwood mpi` for Open MPI")
    variant("mpich", default=False, description="The shim of `sapwood mpi` for MPICH")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("gmake", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("openmpi", when="+openmpi")
    depends_on("mpich", when="+mpich")

    conflicts("platform=darwin", msg="Sapwood runs on Linux")
    conflicts("platform=windows", msg="Sapwood runs on Linux")

    @property
    def shim_compilers(self):
        """The compilers of the MPIs that have a shim; those of others are named as missing by the build."""
        found = []
        if self.spec.satisfies("+openmpi"):
            prefix = self.spec["openmpi"].prefix
            found += [f"OPENMPI_CC={prefix.bin.mpicc}", f"OPENMPI_LIBRARY={prefix.lib}/libmpi.so.40"]
        if self.spec.satisfies("+mpich"):
            prefix = self.spec["mpich"].prefix
            found += [f"MPICH_CC={prefix.bin.mpicc}", f"MPICH_LIBRARY={prefix.lib}/libmpi.so.12"]
        return found

    def build(self, spec, prefix):
        make("build", "shim", *self.shim_compilers)

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}", *self.shim_compilers)
