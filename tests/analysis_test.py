"""The analysis scripts run on a stored sweep and agree with the stored attacks."""

import pathlib
import runpy
import sys

SCRIPT = pathlib.Path(__file__).parents[1] / "analysis" / "read_a_sweep.py"


def test_reading_a_sweep_by_hand_finds_what_the_direct_attack_found(
    tiny_sweep, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tiny_sweep)])
    runpy.run_path(str(SCRIPT))
    said = capsys.readouterr().out
    assert "24 settings of 24" in said
    assert "undefended {}: first negative 1.00, most negative 1.00" in said
