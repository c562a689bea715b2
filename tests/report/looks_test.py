"""At which seeds an answer looks: what is over, what waits, and what failed for good."""

import pytest

from tests.report.made import BARE, PROTECTS, made
from vfljax import defenses, store
from vfljax.report import looks
from vfljax.report.judged_sweep import judge_frames
from vfljax.report.looks import seeds_at_last_look, without_later_seeds
from vfljax.store import Unit, write_text
from vfljax.store.claims import TRIES
from vfljax.store.units import ATTACK, LOCAL_ONLY, SHARD


def test_a_unit_is_over_once_it_is_finished_or_was_given_up(monkeypatch, tmp_path):
    units = [
        Unit("shards/a", SHARD, "a", "p"),
        Unit("shards/b", SHARD, "b", "p", stage=1),
        Unit("attacks/x/000", ATTACK, "x", "probe", needs=("shards/a",)),
        Unit("attacks/x/001", ATTACK, "x", "probe", needs=("shards/b", "shards/a"), stage=1),
        Unit("attacks/y/001", ATTACK, "y", "probe", needs=("shards/b",), stage=1),
        Unit("local_only/000", LOCAL_ONLY, None, LOCAL_ONLY),
    ]
    every, done = frozenset(of.name for of in units), {"shards/a"}
    assert looks.progress(tmp_path) == (frozenset(), frozenset(), frozenset())
    monkeypatch.setattr(store, "units_of", lambda header: units)
    monkeypatch.setattr(store, "finished", lambda folder, unit: unit in done)
    for tries in range(TRIES):
        assert looks.progress(tmp_path, {}) == (every - done, frozenset(), {0, 1})
        write_text(tmp_path / f"failures/shards__b.{tries:032x}.json", '{"why": "full"}')
    # nothing comes of what needs it alone; the other shard of x is still to be attacked
    failed = {"shards/b", "attacks/y/001"}
    assert looks.progress(tmp_path, {}) == (every - done - failed, failed, {0, 1})
    rows = {"attacks/x/001": [{"trial": 0}]}
    monkeypatch.setattr(store, "read_partial_rows", lambda folder, unit: rows.get(unit, []))
    done.add("attacks/x/000")
    waiting, failed, undone = looks.progress(tmp_path, {})
    assert (waiting, undone) == ({"local_only/000"}, frozenset())
    assert failed == {"shards/b", "attacks/y/001", "attacks/x/001"}
    store.clear_failures(tmp_path)  # the command is given again
    assert looks.progress(tmp_path, {}).undone == {1}


def staged(monkeypatch, judged, ends, undone):
    """A sweep that is not finished, whose stages end after these numbers of seeds; some are not over."""
    grid = {"undefended": {}, "noise": {}, "max_norm": {}}
    stages = [{"grid": grid, "seeds": seeds} for seeds in ends]
    header = judged.sweep.header | {"earlier": stages[:-1], "config": stages[-1]}
    state = looks.Progress(frozenset({"x"}), frozenset(), frozenset(undone))
    monkeypatch.setattr(looks, "progress", lambda *_: state)
    return judged.sweep._replace(header=header, unfinished=("a shard is not trained",))


def without(judged, lost):
    """Frames without the seeds of some configurations."""
    pairs = [(c, seed) for c, seeds in lost.items() for seed in seeds]
    return judged.frames._replace(
        **{
            name: of[[pair not in pairs for pair in zip(of["configuration"], of["seed"])]]
            for name, of in (("rows", judged.rows), ("trials", judged.trials))
        }
    )


def test_a_seed_that_failed_for_good_is_left_out_and_the_others_count(monkeypatch):
    judged = made(BARE, PROTECTS, PROTECTS, defenses=("noise", "max_norm"))
    frames = without(judged, {0: [1], 1: [0, 2]})
    for undone, seeds in (((), [4, 3, 5]), ((0,), [2, 2, 5])):
        sweep = staged(monkeypatch, judged, [5], undone)
        kept = looks.at_looks(sweep, frames, 0)
        counts = kept.trials.groupby("configuration")["seed"].nunique()
        assert [*counts] == seeds
        attacked = kept.rows[kept.rows["configuration"] >= 0]
        assert [*attacked.groupby("configuration")["seed"].nunique()] == seeds


def test_what_stays_of_a_point_are_the_first_seeds_that_it_has(monkeypatch):
    judged = made(BARE, PROTECTS)
    sweep = staged(monkeypatch, judged, [5], {0})
    kept = looks.at_looks(sweep, without(judged, {0: [0, 1, 2], 1: [0, 1]}), 0)
    seeds = kept.trials.groupby("configuration")["seed"].agg(list).to_dict()
    assert seeds == {0: [3, 4], 1: [2, 3]}


def test_a_look_has_the_number_of_its_stage_also_where_a_seed_is_lost_everywhere(monkeypatch):
    judged = made(BARE, PROTECTS)
    sweep = staged(monkeypatch, judged, [3, 5], ())
    lost = without(judged, {0: [1], 1: [1, 2]})
    assert looks.number_of_look(lost, sweep.header, 0) == 2
    first = without(judged, {0: [3, 4], 1: [0, 3, 4]})
    assert looks.number_of_look(first, sweep.header, 0) == 1


def test_a_defense_that_needs_a_top_model_is_planned_where_there_is_one():
    grid = {"undefended": {}, "marvell": {"marvell": {"power": [1.0, 2.0]}}}
    grid |= {"gafm": {"gafm": {"delta": 0.1}}}
    top = [name for name, row in defenses.TABLE.items() if row.needs_top]
    assert "gafm" in top
    assert "marvell" not in top
    experiment = made(BARE, config={"grid": grid, "federations": ["split", "no_split"]}).experiment
    assert [looks.planned_points(experiment, of) for of in ("split", "no_split")] == [3, 2]


def test_a_point_is_reached_once_it_is_attacked_or_has_diverged():
    leaks = {"probe/mean": 0.9, "test_utility": 0.88}
    grid = {"undefended": {}, "noise": {"noise": {"scale": [0.1, 1.0]}}}
    every = made(BARE, leaks, leaks, config={"grid": grid})
    assert not looks.unreached(every, "split")
    assert looks.unreached(made(BARE, leaks, config={"grid": grid}), "split")
    second = every.verdicts["configuration"] == 2
    waits = every._replace(verdicts=every.verdicts.assign(leak=every.verdicts["leak"].mask(second)))
    assert looks.unreached(waits, "split")
    diverged = every.trials["configuration"] == 2
    gone = waits._replace(trials=every.trials.assign(diverged=diverged))
    assert not looks.unreached(gone, "split")
    # two seeds are too few to say that it diverges
    few = gone._replace(trials=gone.trials[~diverged | (gone.trials["seed"] < 2)])
    assert looks.unreached(few, "split")


@pytest.mark.parametrize(
    ("done", "seeds"),
    [
        ((), {"undefended": 0, "first": 0, "second": 0}),
        ((0,), {"undefended": 4, "first": 4, "second": 0}),
        ((0, 1), {"undefended": 8, "first": 8, "second": 0}),
        ((0, 1, 3), {"undefended": 8, "first": 8, "second": 4}),
        ((0, 1, 2, 3, 4, 5), {"undefended": 12, "first": 12, "second": 12}),
    ],
)
def test_a_look_at_a_candidate_that_joins_takes_no_seeds_from_the_others(
    monkeypatch, tmp_path, done, seeds
):
    before, after = {"undefended": {}, "first": {}}, {"undefended": {}, "first": {}, "second": {}}
    stages = [{"grid": grid, "seeds": look} for grid in (before, after) for look in (4, 8, 12)]
    units = [Unit(str(n), ATTACK, None, "", stage=n) for n in range(6)]
    units.append(Unit("9", LOCAL_ONLY, None, ""))
    monkeypatch.setattr(looks.store, "units_of", lambda header: units)
    monkeypatch.setattr(looks.store, "finished", lambda folder, unit: int(unit) in done)
    header = {"earlier": stages[:-1], "config": stages[-1]}
    assert seeds_at_last_look(tmp_path, header) == seeds
    # a recording has all seeds at once
    header = {"earlier": [], "config": {"grid": before, "seeds": 8}}
    once = 8 * (0 in done)
    assert seeds_at_last_look(tmp_path, header) == {"undefended": once, "first": once}


def test_each_point_of_a_decision_is_judged_on_the_seeds_of_its_own_last_look():
    old = {"probe/mean": [0.6, 0.6, 0.6, 0.9, 0.6], "test_utility": 0.88}
    found = made(BARE, old, PROTECTS, PROTECTS, defenses=("noise", "max_norm", "ppdl"))
    seeds = {"undefended": 4, "noise": 4, "max_norm": 3, "ppdl": 0}
    frames = without_later_seeds(found.frames, seeds, 0)
    again = judge_frames(found.sweep, found.experiment, frames).leading.set_index("method")
    assert again["seeds"].to_dict() == {"undefended": 4, "noise": 4, "max_norm": 3}
    # the fourth seed, on which the older candidate leaks, still counts once another has joined
    assert again.loc["noise", "leak"] == pytest.approx((3 * 0.6 + 0.9) / 4)
