"""Memory of a device that is exhausted: fewer trials at once, the same figures. The error is injected."""

import shutil

import jax
import pytest

from tests.sweeps import comparable, tiny, train
from vfljax import machine, store
from vfljax.errors import UserError
from vfljax.sweep import programs

FOUR = tiny(
    seeds=4,
    grid={"undefended": {}},
    attacks={"direct": {"rule": "most_negative"}},
    federations=("no_split",),
)
EXHAUSTED = "RESOURCE_EXHAUSTED: Out of memory allocating"


@pytest.fixture
def at_most(monkeypatch):
    """``at_most(width, text)``: wider programs raise JAX's error with this text."""
    original = programs.Program.__call__

    def limit(width, text=EXHAUSTED):
        def call(self, *arguments, **rest):
            if self.layout.width > width:
                raise jax.errors.JaxRuntimeError(text)
            return original(self, *arguments, **rest)

        monkeypatch.setattr(programs.Program, "__call__", call)

    return limit


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Four trials, two at once on each device."""
    return train(tmp_path_factory.mktemp("wide") / "w", FOUR)


def same(some, others):
    """Rows whose texts are equal and whose figures are within 1e-4."""
    assert some.num_rows == others.num_rows
    return all(
        (pytest.approx(value, abs=1e-4) if isinstance(value, float | list) else value)
        == other[name]
        for row, other in zip(comparable(some), comparable(others), strict=True)
        for name, value in row.items()
    )


def test_exhausted_memory_halves_the_settings_at_once_and_the_figures_stay(
    wide, at_most, tmp_path, capsys, monkeypatch
):
    workdir = tmp_path / "w"
    (shard,) = (s["name"] for s in wide.header["shards"])
    assert store.width_of_shard(wide.workdir, shard) == 2
    at_most(1)
    narrow = train(workdir, FOUR)
    assert same(narrow.results, wide.results)
    assert same(narrow.attacks, wide.attacks)
    assert {row["status"] for row in narrow.results.to_pylist()} == {"ok"}
    said = capsys.readouterr().err
    for what in ("undefended-no_split", "direct/most_negative"):
        assert f"{what}: 4 trials at once exhaust the device's memory, goes on with 2\n" in said
    assert store.width_of_shard(workdir, shard) == 1


def test_what_would_not_fit_an_accelerator_is_narrowed_before_it_runs(
    wide, tmp_path, capsys, monkeypatch
):
    ran, original = [], programs.Program.__call__

    def call(self, *arguments, **rest):
        out = original(self, *arguments, **rest)
        ran.append(self.layout.width)
        return out

    monkeypatch.setattr(programs.Program, "__call__", call)
    for known in programs._PROGRAMS.values():
        monkeypatch.setattr(known, "_fits", False, raising=False)
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(cpu=False, memory=1e12))
    monkeypatch.setattr(machine, "fitting_width", lambda compiled, width: 1)
    narrow = train(tmp_path / "w", FOUR)
    assert set(ran) == {1}
    (shard,) = (s["name"] for s in wide.header["shards"])
    assert store.width_of_shard(tmp_path / "w", shard) == 1
    said = capsys.readouterr().err
    assert "undefended-no_split: 4 trials at once need " in said
    assert "direct/most_negative: 8 trials at once need " in said
    assert same(narrow.results, wide.results)
    assert same(narrow.attacks, wide.attacks)


def test_a_shard_that_goes_on_keeps_its_width(wide, at_most, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("vfljax.sweep.trainer.SAVE_SECONDS", 0.0)
    original = store.write_shard

    def killed(*arguments):
        raise KeyboardInterrupt

    at_most(1)
    monkeypatch.setattr(store, "write_shard", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "w", FOUR)
    monkeypatch.setattr(store, "write_shard", original)
    at_most(2)
    (shard,) = (s["name"] for s in wide.header["shards"])
    assert store.width_of_shard(tmp_path / "w", shard) == 1
    narrow = train(tmp_path / "w", FOUR, attack=False)
    assert store.width_of_shard(tmp_path / "w", shard) == 1
    assert same(narrow.results, wide.results)
    assert "exhaust" not in capsys.readouterr().err.split("train:")[-1]


@pytest.mark.parametrize("text", [EXHAUSTED, "INTERNAL: another error"])
def test_one_setting_that_does_not_fit_and_another_error_are_the_end(wide, at_most, tmp_path, text):
    at_most(0, text)
    with pytest.raises(UserError, match=f"failed 3 times: JaxRuntimeError: {text}"):
        train(tmp_path / "w", FOUR)
    workdir = shutil.copytree(wide.workdir, tmp_path / "trained")
    shutil.rmtree(workdir / "attacks")
    with pytest.raises(UserError, match=f"^attacks/.* failed 3 times: JaxRuntimeError: {text}"):
        train(workdir, FOUR)


def test_a_width_is_read_while_another_process_removes_the_save(wide, tmp_path):
    """Of shards that jobs elsewhere train: a save goes when the next one is whole, file by file."""
    shutil.copytree(wide.workdir, tmp_path / "w")
    (shard,) = (s["name"] for s in wide.header["shards"])
    shutil.rmtree(tmp_path / "w" / "shards" / shard / "checkpoint")
    assert store.width_of_shard(tmp_path / "w", shard) == 2
