"""The build backend of `pip install .`: maturin's, with the `sapwood` command beside the library.

maturin builds one crate, the extension module. A network needs the command, too, as the program of its
communication processes, so it is built first and put where maturin takes scripts from.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "target" / "python" / "sapwood.data" / "scripts"
NAME = "sapwood"

# maturin wants the folder to be there whatever it is asked.
SCRIPTS.mkdir(parents=True, exist_ok=True)

LINKED_FOR_A_TREE = ["cargo", "program"]
LINKED_AS_USUAL = ["cargo", "build", "--release", "--package", "sapwood-cli", "--bin", NAME]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with the library and the command."""
    _put_command()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The same for an installation that follows the sources."""
    _put_command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    """Refused: the sources of the command are the repository's, of which an archive has a part."""
    raise NotImplementedError("install from the repository: pip install PATH-OF-THE-REPOSITORY")


def _put_command():
    # Its usual form is linked to no shared library, which some systems have no archives for.
    if subprocess.run(LINKED_FOR_A_TREE, cwd=ROOT, check=False).returncode != 0:
        subprocess.run(LINKED_AS_USUAL, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
    shutil.copy2(ROOT / target / "release" / NAME, SCRIPTS / NAME)
