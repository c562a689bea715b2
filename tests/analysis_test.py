"""The analysis scripts run; the notebooks are ``notebooks_test``'s."""

import csv
import sys

from analysis import judging


def test_the_simulation_of_judging_writes_a_line_a_cell_and_the_tables(
    tmp_path, monkeypatch, capsys
):
    for name, values in {"SEEDS": (3,), "ATTACKS": (2, 3), "SPREADS": (0.05,)}.items():
        monkeypatch.setattr(judging, name, values)
    monkeypatch.setattr(sys, "argv", ["judging", f"--out={tmp_path}", "--runs=4"])
    judging.main()
    text = (tmp_path / "tables.md").read_text()
    assert text.strip() == capsys.readouterr().out.strip()
    assert "| bias for what was picked, absolute | 3 | 0.0" in text
    lines = {path.stem: list(csv.DictReader(path.open())) for path in tmp_path.glob("*.csv")}
    counts = {name: len(rows) for name, rows in lines.items()}
    assert counts == {"choosing": 16, "limits": 16, "verdicts": 40, "strengths": 4}
    shares = [float(lines["verdicts"][0][v]) for v in judging.simulation.judging.VERDICTS]
    assert abs(sum(shares) - 1) < 1e-3
