"""What a dry run counts, without training or writing anything."""

from tests.sweeps import TINY
from vfljax.launching import running
from vfljax.sweep.grid import parse


def test_a_dry_run_counts_what_a_new_sweep_would_do_and_writes_nothing(tmp_path):
    text = running.counted(parse(TINY), tmp_path / "w")
    assert text.startswith("24 trials in 4 programs on ")
    assert "of memory" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["kdk", "10", "1", "10"] in [row[:4] for row in rows]
    assert ["direct/most_negative", "no_split", "12"] in rows
    assert "skipped norm: defined for two classes, digits has 10" in text
    assert not [*tmp_path.iterdir()]


def test_a_dry_run_of_a_stored_sweep_counts_what_is_left(tiny_sweep):
    text = running.counted(parse(TINY), tiny_sweep)
    assert "0 shards to train: all of them are stored" in text
    assert "24 of them are trained already" in text
