"""The types that are written down are those that are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sapwood

from conftest import FOLDER

ROOT = FOLDER.parents[2]


def run(*words: str, folder: Path = ROOT) -> str:
    ran = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, cwd=folder)
    return "" if ran.returncode == 0 else ran.stdout + ran.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert sapwood.__file__ is not None
    assert (Path(sapwood.__file__).parent / "py.typed").is_file()


def test_the_stubs_say_what_the_module_has(tmp_path: Path) -> None:
    assert run("mypy.stubtest", "sapwood._native", "--concise", folder=tmp_path) == ""


def test_the_package_and_tools_that_use_it_are_well_typed(tmp_path: Path) -> None:
    strict = ["mypy", "--strict", "--cache-dir", str(tmp_path)]
    assert run(*strict, "-p", "sapwood", folder=tmp_path) == ""
    folders = [FOLDER.parent / "examples", ROOT / "examples/python"]
    tools = [str(path) for folder in folders for path in folder.glob("*.py")]
    assert run(*strict, *tools, str(FOLDER / "merges.py"), str(FOLDER / "worker.py"), folder=tmp_path) == ""


def test_a_wrong_use_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import sapwood\nsapwood.Network('2').stream().ask(timeout='soon')\n")
    found = run("mypy", "--strict", "--cache-dir", str(tmp_path), str(wrong), folder=tmp_path)
    assert 'incompatible type "str"; expected "float | None"' in found
