"""What can be known of programs on a GPU without one: they lower for it, no host is called from them, their
loops are few and known, and an epoch reads nothing of the host. Nothing is compiled for a GPU here.

``python -m pytest -m slow tests/gpu_programs_test.py`` tries every defense and every form of every attack.
"""

import functools
import pathlib
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from analysis.benchmark import measuring
from analysis.benchmark.jaxprs import equations
from tests.attacks_contract_test import ROWS
from tests.federation.training_test import planned
from vfljax import defenses, machine
from vfljax.attack_runs.batching import AttackProgram, make_attack_member
from vfljax.config import Teacher
from vfljax.federation import optimizers, teacher, training
from vfljax.models import CNN, MLP, ResNet, implicit_gemm
from vfljax.models.reading import Streamed
from vfljax.sweep import shard_trainer
from vfljax.testing import of_attacks
from vfljax.testing.exchanges import BATCH, attacker_of
from vfljax.testing.federations import make_spec
from vfljax.types import Agreed, DefenseSpec

pytestmark = pytest.mark.slow

PACKAGE = str(pathlib.Path(shard_trainer.__file__).parents[1])
CUDA = "cuda"
# where a program loops, and why it may: the turns of none grow with the rows of a batch
LOOPS = {
    "attacks.cohabitation.cohabitation": "rounds of the iteration",
    "attacks.cohabitation.levels_of": "over the trees and their levels",
    "attacks.cohabitation.means": "over the trees and their levels",
    "attacks.node_posterior.likeliest": "one factor after the other",
    "federation.hoisting.scan": "over the batches of an epoch",
    "federation.teacher.make_teachers": "over teachers, epochs and batches",
    "defenses.cae.train": "the steps of an optimizer",
    "defenses.compression.keep_largest": "bisection",
    "defenses.marvell.optimal_noise": "a solver's fixed rounds",
    "defenses.p3eft.logistic_regression": "a solver's fixed rounds",
    "attacks.core.minimize": "the steps of an optimizer",
    "attacks.completion._averaged": "the steps of an optimizer",
    "attacks.joint.joint": "rounds of self-training",
    "attacks.spectral.directions": "squarings of a matrix",
    "attacks.spectral.k_means": "rounds of k-means, one start after the other",
    "attacks.clusters.clusters": "one draw after the other",
    "attacks.divisions.attack_of": "starts",
    "attacks.divisions.explained": "starts, and batches one after the other: each has B x B numbers",
    "attacks.divisions.divided": "rounds, and batches one after the other",
    "attacks.residual.residual": "batches one after the other: each has B x B numbers",
    "attacks.similarity.clusters": "rounds of k-means, and classes",
    "attacks.enumeration.followed": "batches in order: what is learned of one is used in the next",
    "attacks.enumeration.renamed": "the assignment of classes to clusters, class by class",
    "attacks.neighbors.propagate": "the products of a polynomial of the graph",
    "attacks.ranks.midranks": "halvings of a sorted column",
    "attacks.ranks.solve": "conjugate gradients",
    "attacks.softmax._descended": "the steps of an optimizer",
    "attacks.softmax._largest_eigenvalue": "powers of a matrix",
    "attacks.batch_inversion.batch_inversion": "batches one after the other",
}
# these do grow with rows: analysis/guide/gpu.md has the reasons
BY_ROWS = {
    "attacks.batch_inversion.least_solution": "an elimination, pivot by pivot",
    "attacks.neighbors.nearest": "blocks of rows one after the other: each is compared with all rows",
    "attacks.similarity.nearest": "known rows one after the other",
}


def place_of(path):
    """The function of vfljax that an operation is of. Of what a jitted function does it is the caller, since a
    kept trace names whoever called it first."""
    place = ""
    for equation in path:
        frames = [f for f in equation.source_info.traceback.frames if PACKAGE in f.file_name]
        if frames:
            module = frames[0].file_name.removeprefix(PACKAGE + "/").removesuffix(".py")
            place = f"{module.replace('/', '.')}.{frames[0].function_name.split('.<locals>')[0]}"
        if equation.primitive.name == "jit":
            break
    return place


def is_kernel(equation):
    return equation.primitive.name == "pallas_call"


def loops(jaxpr, platform=CUDA):
    """Where a program loops, and how often; None where that is not known before. What a kernel of Pallas
    does in a loop is a single call."""
    found = {}
    for path in equations(jaxpr, platform):
        if path[-1].primitive.name in ("scan", "while") and not any(map(is_kernel, path)):
            found.setdefault(place_of(path), []).append(path[-1].params.get("length"))
    return found


def callbacks(jaxpr):
    names = {path[-1].primitive.name for path in equations(jaxpr, CUDA)}
    return {name for name in names if "callback" in name}


def check(traced):
    """Lower a traced function for CUDA, and look at what it calls and where it loops."""
    jaxpr = traced.jaxpr.jaxpr
    assert not callbacks(jaxpr)
    unknown = set(loops(jaxpr)) - {*LOOPS, *BY_ROWS}
    assert not unknown, "name these loops in LOOPS, and why they may be there"
    assert "stablehlo" in traced.lower(lowering_platforms=(CUDA,)).as_text()


def epoch(spec, columns=6):
    """The program of an epoch of three settings, traced."""
    knobs = {d.name: defenses.TABLE[d.name].example for d in spec.defenses}
    run = jax.vmap(training.make_run(spec), in_axes=(0, None))
    return jax.jit(run).trace(*measuring.epoch_shapes(spec, 3, columns, knobs))


def defended(name, split, rows=8):
    """The program of an epoch with that defense, of three whole batches and one of a single row."""
    sizes = {"batch_size": rows, "num_rows": 3 * rows + 1, "passive": 1}
    changes = {"split": split, "label_features": name != "gafm", **sizes}
    return epoch(make_spec(2, (DefenseSpec(name),), **changes))


@pytest.mark.parametrize(
    ("name", "split"),
    [(n, s) for n, row in defenses.TABLE.items() for s in (True, False) if s or not row.needs_top],
)
def test_an_epoch_lowers_and_loops_as_often_whatever_the_rows_of_a_batch(name, split):
    small, larger = (defended(name, split, rows) for rows in (8, 16))
    check(small)
    assert loops(larger.jaxpr.jaxpr) == loops(small.jaxpr.jaxpr)


def test_a_loop_over_rows_is_found():
    """PPDL on a CPU visits its entries one after the other."""
    programs = (defended("ppdl", True, rows).jaxpr.jaxpr for rows in (8, 16))
    assert [max(loops(j, "cpu")["defenses.ppdl.by_visits"]) for j in programs] == [32, 64]


def of_images(network):
    bottom = network(out=4, convolution="xla")
    return {"bottoms": (bottom,) * 2, "precision": "bfloat16"}


@pytest.mark.parametrize(
    ("columns", "changes"),
    [
        (6, {"optimizers": (*optimizers.MALICIOUS["sgd"].values(),), "upload": "swap"}),
        ((24, 24, 3), of_images(functools.partial(ResNet, blocks=(1, 1), width=4))),
        ((24, 24, 3), of_images(CNN)),
    ],
)
def test_malicious_parties_and_networks_for_images(columns, changes):
    check(epoch(make_spec(3, passive=1, **changes), columns))


def test_convolutions_in_pallas_are_as_many_kernels_for_all_trials(monkeypatch):
    """The stem and two convolutions of a block, each with two gradients but for that of the images."""
    monkeypatch.setattr(machine, "capability", lambda: 9.0)
    bottom = ResNet(out=4, blocks=(1,), width=4, convolution="pallas")
    traced = epoch(make_spec(2, passive=1, bottoms=(bottom,) * 2, precision="bfloat16"), (6, 5, 3))
    check(traced)
    found = [path[-1] for path in equations(traced.jaxpr.jaxpr) if is_kernel(path[-1])]
    assert found
    assert {equation.params["grid_mapping"].grid[0] for equation in found} == {3}


@pytest.mark.parametrize("channels", sorted(implicit_gemm.BY_INPUT))
def test_every_tile_of_a_convolution_lowers(channels):
    def gradients(x, kernel):
        y, pullback = jax.vjp(implicit_gemm.convolve, x, kernel)
        return pullback(y)

    shapes = (4, 8, 5, channels), (3, 3, channels, channels)
    check(jax.jit(gradients).trace(*(jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in shapes)))


def test_teachers():
    spec = make_spec(2, passive=1)
    table = measuring.epoch_shapes(spec, 2, 6, {})[1][0]
    seeds, network = jnp.arange(2, dtype=jnp.uint32), MLP((4,), 2, dropout=0.1)
    train = teacher.make_teachers(seeds, Teacher(epochs=3, batch_size=8), network)
    labels = np.zeros((2, spec.num_rows), np.int32)
    lessons = teacher.Lessons(np.arange(2), labels, labels.astype(np.float32))
    check(jax.jit(train, static_argnums=2).trace(lessons, table, 2))


@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, row in ROWS.items() for options in row.options]
)
def test_attacks(name, options):
    tested = of_attacks.TestedAttack(name, options, ROWS[name].classes[0])
    case, attack = tested.case(), tested.attack()
    bottoms = (MLP((), case.run.exchange["embeddings"].shape[-1]),)
    static = AttackProgram(
        name, (tuple(options.items()),), bottoms, tested.num_classes, Agreed(BATCH)
    )
    if attack.diagnostic:  # which is computed of a whole federation, and constructed here
        view, known = attacker_of(*jax.tree.map(jnp.asarray, case))
        check(jax.jit(attack.run).trace(jax.random.key(0), view, known, tested.knobs))
        return
    knobs = {k: np.float32([v]) for k, v in {**case.run.knobs, **tested.knobs}.items()}
    run = case.run._replace(knobs=knobs)
    two = jax.tree.map(lambda a: np.stack([np.asarray(a)] * 2), run)
    common = jax.tree.map(jnp.asarray, case.common)
    check(jax.jit(jax.vmap(make_attack_member(static), in_axes=(0, None))).trace(two, common))


def test_only_rows_that_stay_on_the_host_are_called_for(monkeypatch):
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(cpu=False))
    table = Streamed(np.zeros((9, 2), np.float32))
    found = callbacks(jax.make_jaxpr(lambda rows: table[rows])(jnp.arange(3)).jaxpr)
    assert found == {"pure_callback"}


def test_no_epoch_moves_anything_between_host_and_devices():
    plan = planned()
    with ThreadPoolExecutor(1) as pool:
        ready = shard_trainer.Trainer(plan, plan.shards[0], pool, shard_trainer.Orders(plan))
    member, snapshot = ready.start(plan.shards[0])
    for number in range(ready.group.spec.epochs):
        ready.shared(number)
    with jax.transfer_guard("disallow"):
        ends = [finite for _, finite in ready.epochs(member, snapshot)]
        with pytest.raises(Exception, match="Disallowed host-to-device"):
            shard_trainer.Orders(ready.plan).of(0)  # the number of the epoch
    assert len(ends) == ready.group.spec.epochs
    assert np.all(ends[-1])
