"""What tests of stored sweeps share."""

import shutil

import pytest


@pytest.fixture
def workdir(tiny_sweep, tmp_path):
    """A copy of the tiny sweep."""
    return shutil.copytree(tiny_sweep, tmp_path / "w")
