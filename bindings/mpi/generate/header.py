"""Reads the MPI functions out of an installed mpi.h.

The header goes through the preprocessor first, so that what remains are plain
declarations whatever macros an implementation wraps around them. This module
owns the parsing and knows nothing of tables or wrappers.
"""

import re
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """One parameter: its declaration as written, its name, and what it is."""

    text: str
    name: str

    @property
    def base(self):
        """Type word, for example `MPI_Comm` or `int`."""
        words = [w for w in re.findall(r"[A-Za-z_]\w*", self.text) if w not in ("const", "struct")]
        return words[0]

    @property
    def is_pointer(self):
        return "*" in self.text or "[" in self.text

    @property
    def is_text(self):
        """Whether Fortran passes a hidden length for this parameter."""
        return self.base == "char"


@dataclass(frozen=True)
class Function:
    """One MPI function as the C header declares it; every one returns int."""

    name: str
    parameters: tuple

    @property
    def is_large_count(self):
        return self.name.endswith("_c")


# Functions that get no wrapper, with the reason. This is the only such list.
EXCEPTIONS = (
    (r"MPI_Wtime|MPI_Wtick", "reads a clock: counting it would cost more than the call"),
    (r"MPI_Aint_add|MPI_Aint_diff", "address arithmetic, often a macro; does not return int"),
    (r"MPI_Pcontrol", "takes a variable argument list: level.c has it"),
    (r"MPI_Get_version|MPI_Abi_get_version", "mpi4py and others look for it to learn whether an MPI library is loaded already"),
    (r"MPI_\w+_(c2f|f2c|f2f08|f082f|c2f08|f082c|toint|fromint)", "converts a handle or a status"),
    (r"MPI_T_\w+", "the tool information interface"),
    (r"MPI_(\w+_)?(NULL|DUP)(_COPY|_DELETE)?_FN|MPI_CONVERSION_FN_NULL(_C)?", "a predefined call-back"),
)


def exception_reason(name):
    """Why the function has no wrapper, or None."""
    for pattern, reason in EXCEPTIONS:
        if re.fullmatch(pattern, name):
            return reason
    return None


def preprocess(compiler):
    """The text of mpi.h as the given MPI compiler sees it."""
    command = [compiler, "-E", "-P", "-DOMPI_OMIT_MPI1_COMPAT_DECLS=0", "-x", "c", "-"]
    done = subprocess.run(command, input="#include <mpi.h>\n", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{compiler} cannot preprocess mpi.h: {done.stderr.strip()}")
    return done.stdout


def split_parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return ()
    parameters = []
    for part in text.split(","):
        part = part.strip()
        match = re.search(r"([A-Za-z_]\w*)\s*(\[[^\]]*\]\s*)*$", part)
        if not match or match.group(1) == part:
            raise SystemExit(f"mpi.h declares a parameter without a name: {part!r}")
        parameters.append(Parameter(part, match.group(1)))
    return tuple(parameters)


def functions(compiler):
    """All functions to wrap, by name, in the order of their names."""
    found = {}
    for name, parameters in re.findall(r"\bint\s+(MPI_\w+)\s*\(([^()]*)\)", preprocess(compiler)):
        if exception_reason(name) is None:
            found[name] = Function(name, split_parameters(parameters))
    return dict(sorted(found.items()))
