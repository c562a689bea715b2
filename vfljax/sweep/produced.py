"""What produced a sweep, as its header says: versions of libraries, and the revision of this code."""

from __future__ import annotations

import functools
import importlib.metadata
import pathlib
import platform
import subprocess


def versions() -> dict[str, str]:
    """What produced a result."""
    names = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "scikit-learn")
    installed = {name: importlib.metadata.version(name) for name in names}
    installed["python"] = platform.python_version()
    try:
        installed["vfljax"] = importlib.metadata.version("vfljax")
    except importlib.metadata.PackageNotFoundError:
        installed["vfljax"] = "not installed"
    return installed


def revision() -> str:
    """The git revision of this code, with '+' when the tree is changed; empty outside git."""
    folder = pathlib.Path(__file__).parent
    call = functools.partial(
        subprocess.run, cwd=folder, capture_output=True, text=True, check=False
    )
    try:
        head = call(["git", "rev-parse", "--short=12", "HEAD"])
        dirty = call(["git", "status", "--porcelain", "--untracked-files=no"])
    except OSError:
        return ""
    if head.returncode:
        return ""
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")
