"""Building the package from its sources says at once what it lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[1]


def load_backend(path: Path) -> subprocess.CompletedProcess[str]:
    """What pip meets first, where programs are searched in one folder."""
    code = f"import sys; sys.path.insert(0, {str(BACKEND)!r}); import build_backend"
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env={"PATH": str(path)}, capture_output=True, text=True, timeout=120, check=False
    )


def write_program(path: Path, prints: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


def test_without_rust_it_ends_in_one_line(tmp_path: Path) -> None:
    done = load_backend(tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "needs Rust 1.95 or newer, and there is no cargo and rustc on PATH" in done.stderr


@pytest.mark.parametrize("version", ["rustc 1.94.1 (0000000 2026-02-01)", "no version"])
def test_with_an_old_rust_it_ends_in_one_line(tmp_path: Path, version: str) -> None:
    write_program(tmp_path / "cargo", "cargo")
    write_program(tmp_path / "rustc", version)
    done = load_backend(tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"rustc says '{version}'" in done.stderr


def test_with_a_rust_of_that_version_it_goes_on_to_maturin(tmp_path: Path) -> None:
    write_program(tmp_path / "cargo", "cargo")
    write_program(tmp_path / "rustc", "rustc 1.95.0 (0000000 2026-04-16)")
    done = load_backend(tmp_path)
    assert done.returncode == 0, done.stderr
