"""How hard programs are optimized: by the plan's estimate, stored, and the same on every resume."""

from tests.sweeps import plan_of, tiny
from vfljax import machine, store
from vfljax.sweep import programs
from vfljax.sweep.plan import QUICK, divided_as
from vfljax.sweep.programs import Effort


def test_small_plans_compile_quickly_and_long_kinds_of_programs_do_not():
    long_attack = tiny(attacks={"passive": {"known": 20, "steps": 1_000_000}})
    assert plan_of(long_attack).effort == Effort(QUICK, None)
    long_training = tiny(**{"training.epochs": 1_000_000}, attacks={"norm": {}})
    assert plan_of(long_training).effort == Effort(None, QUICK)


def test_a_stored_choice_stays_whatever_is_planned_now(tiny_sweep):
    planned, stored = plan_of(tiny()), store.load(tiny_sweep).header
    assert stored["effort"] == {"training": QUICK, "attacks": QUICK} == planned.effort._asdict()
    changed = {**stored, "effort": {"training": None, "attacks": 1}}
    assert divided_as(planned, changed).effort == Effort(None, 1)
    older = {name: value for name, value in stored.items() if name != "effort"}
    assert divided_as(planned, older).effort == Effort(None, None)
    newer = {**stored, "shards": [{**shard, "new": 1} for shard in stored["shards"]]}
    assert divided_as(planned, newer).shards == divided_as(planned, stored).shards


def test_a_level_is_the_compiler_s_option_on_a_cpu_unless_the_user_names_one(monkeypatch):
    # as users run it: conftest sets a level for all programs
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")
    assert programs.compiler_options(None) == {}
    assert programs.compiler_options(QUICK) == {"xla_backend_optimization_level": QUICK}
    with monkeypatch.context() as patched:
        patched.setattr(machine, "offered", lambda: machine.Offered(cpu=False))
        assert programs.compiler_options(QUICK) == {}
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert programs.compiler_options(QUICK) == {}
