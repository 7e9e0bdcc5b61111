"""The build backend of `pip install .`: maturin's, with Sapwood's programs beside the library.

maturin builds one crate, the extension module. A network needs `sapwood-node`, too, the program of its
communication processes, and people the command `sapwood`, so both are built first and put where maturin
takes scripts from.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

RUST_MIN = (1, 95)


def _check_rust():
    """Ends the build in one line where Rust is missing or too old, before anything is built or fetched."""
    wanted = f"building the package from its sources needs Rust {RUST_MIN[0]}.{RUST_MIN[1]} or newer"
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        raise SystemExit(f"sapwood: {wanted}, and there is no cargo and rustc on PATH: install it, or install a wheel")
    told = subprocess.run(["rustc", "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.match(r"rustc (\d+)\.(\d+)", told)
    if found is None or tuple(map(int, found.groups())) < RUST_MIN:
        raise SystemExit(f"sapwood: {wanted}; rustc says '{told.strip()}': update it, or install a wheel")


_check_rust()

import maturin  # noqa: E402
from maturin import (  # noqa: E402,F401
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "target" / "python" / "sapwood.data" / "scripts"
# Each program with its package and the alias of cargo by which it is linked to no shared library.
PROGRAMS = {"sapwood": ("sapwood-cli", "program"), "sapwood-node": ("sapwood-node-program", "node-program")}

# maturin wants the folder to be there whatever it is asked.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with the library and the programs."""
    _put_programs()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The same for an installation that follows the sources."""
    _put_programs()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """Refused: the sources of the programs are the repository's, of which an archive has a part."""
    raise NotImplementedError("install from the repository: pip install PATH-OF-THE-REPOSITORY")


def _put_programs():
    target = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
    for name, (package, alias) in PROGRAMS.items():
        # Some systems have no archives of what the usual form is linked with.
        if subprocess.run(["cargo", alias], cwd=ROOT, check=False).returncode != 0:
            as_usual = ["cargo", "build", "--release", "--package", package, "--bin", name]
            subprocess.run(as_usual, cwd=ROOT, check=True)
        shutil.copy2(ROOT / target / "release" / name, SCRIPTS / name)
