"""The label party's teacher."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sweeps import tiny
from vfljax import defenses, keys, lab
from vfljax.config import resolve
from vfljax.datasets import TABLE
from vfljax.datasets.core import make_table, split_rows
from vfljax.datasets.dividing import divide
from vfljax.errors import UserError
from vfljax.models import MLP, ResNet
from vfljax.teacher import Lessons, TeacherConfig, lessons, teacher_scores, teacher_start

CONFIG = TeacherConfig(
    MLP((16,), 10), epochs=10, batch_size=32, learning_rate=3e-3, temperature=1.0
)


def scores(table, config=CONFIG, given=None):
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    raw = Lessons(np.arange(2), labels, np.ones(labels.shape, np.float32))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    return np.asarray(teacher_scores(table, seeds, given or raw, config))


def make():
    digits = TABLE["digits"]("")
    splits = [split_rows(digits, seed, 0.4, 0.2, 0.2) for seed in range(2)]
    parties = resolve({})["parties"]
    return digits, splits, make_table(divide(digits, parties), digits.labels, splits, "range")


def standard():
    """As ``make``, but with statistics that differ by seed."""
    digits, splits, _ = make()
    blocks = divide(digits, resolve({})["parties"])
    return make_table(blocks, digits.labels, splits, "standard")


def test_probabilities_are_right_more_often_than_chance_and_differ_by_seed():
    digits, splits, table = make()
    found = scores(table)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    for seed in range(2):
        assert (found[seed].argmax(-1) == digits.labels[splits[seed].train]).mean() > 0.6


def test_only_the_label_party_s_own_columns_are_read():
    _, _, table = make()
    blind = table._replace(features=(jnp.zeros_like(table.features[0]), table.features[1]))
    np.testing.assert_array_equal(scores(table), scores(blind))


def test_temperature_flattens_and_keeps_the_ranks():
    _, _, table = make()
    sharp, flat = scores(table), scores(table, CONFIG._replace(temperature=4.0))
    assert flat.max(-1).mean() < sharp.max(-1).mean()
    np.testing.assert_array_equal(sharp.argmax(-1), flat.argmax(-1))


def test_rows_of_weight_0_teach_nothing():
    """Whatever their labels say."""
    _, _, table = make()
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    weights = np.random.default_rng(0).integers(0, 2, labels.shape).astype(np.float32)
    other = np.where(weights > 0, labels, (labels + 3) % 10)
    one, two = (scores(table, given=Lessons(np.arange(2), y, weights)) for y in (labels, other))
    np.testing.assert_array_equal(one, two)
    assert np.any(one != scores(table, given=Lessons(np.arange(2), other, np.ones_like(weights))))


CHAINS = {
    "undefended": {},
    "kdk": {"kdk": {"epsilon": (0.1, 0.4), "k": 2}},
    "both": {"label_dp": {"epsilon": (1.0, 4.0)}, "kdk": {"epsilon": (0.1, 0.4), "k": 2}},
    "prior": {"label_dp": {"epsilon": 1.0, "mechanism": "rr_with_prior"}},
}


def test_settings_share_a_teacher_exactly_when_seed_and_the_labels_it_may_see_agree():
    made = lab.prepare(tiny(grid=CHAINS, attacks={}))
    given, teachers = lessons(made.groups, made.table)
    settings = [s for group in made.groups for s in group.settings if s.id in teachers]
    assert {s.arm for s in settings} >= {"kdk", "both", "prior"}
    for s in settings:
        drawn = s.knobs.get("label_dp", {}).get("epsilon")
        same = {
            t.id
            for t in settings
            if t.seed == s.seed
            and t.knobs.get("label_dp", {}).get("epsilon") == drawn
            and (t.arm == "prior") == (s.arm == "prior")
        }
        assert same == {t.id for t in settings if teachers[t.id] == teachers[s.id]}
        assert given.seed_index[teachers[s.id]] == s.seed


def test_under_label_dp_the_teacher_sees_the_labels_training_sees_and_no_others():
    """KDk after label DP: the lesson is, row by row, what the targets slot shows later slots."""
    made = lab.prepare(tiny(grid={"both": CHAINS["both"]}, attacks={}))
    given, teachers = lessons(made.groups, made.table)
    setting = made.groups[0].settings[0]
    raw = made.table.labels[made.table.train[setting.seed]]
    chain = defenses.build(made.groups[0].spec.defenses, setting.knobs)
    key = keys.fold(keys.run_key(setting.seed), "defense")
    uniform = jnp.full((len(raw), 10), 0.1)
    state = chain.init(key, defenses.TrainingData(raw, uniform, 10))
    lesson = given.labels[teachers[setting.id]]
    np.testing.assert_array_equal(lesson, state["label_dp"])
    assert 0.05 < np.mean(lesson == np.asarray(raw)) < 0.5  # e / (e + 9) = .23
    assert np.all(given.weights[teachers[setting.id]] == 1)


def test_a_two_stage_teacher_sees_randomized_labels_of_one_half_only():
    made = lab.prepare(tiny(grid={"prior": CHAINS["prior"]}, attacks={}))
    given, _ = lessons(made.groups, made.table)
    assert np.all((given.weights == 0) | (given.weights == 1))
    np.testing.assert_allclose(given.weights.mean(1), 0.5, atol=0.01)
    assert np.all(given.labels[given.weights == 0] == 0)  # their labels have not been touched


def test_a_teacher_may_be_any_network_that_reads_the_columns():
    digits, splits, table = make()
    network = ResNet(out=10, width=8, blocks=(1,))
    config = TeacherConfig(network, epochs=8, batch_size=32, learning_rate=1e-2, temperature=1.0)
    found = scores(table, config)
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-5)
    for seed in range(2):  # its batch statistics have moved: evaluation mode reads digits
        assert (found[seed].argmax(-1) == digits.labels[splits[seed].train]).mean() > 0.4


def test_a_teacher_may_start_from_given_weights():
    _, _, table = make()
    still = CONFIG._replace(learning_rate=0.0)
    start = starts(table, still)
    raw = Lessons(np.arange(2), *lesson_of(table))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    # each seed's own random start, given back to it, is the start it would have drawn
    drawn, given = (teacher_scores(table, seeds, raw, still, own) for own in (None, start))
    np.testing.assert_allclose(given, drawn, atol=1e-6)
    kernels = start["params"]["Dense_0"]["kernel"]
    assert np.abs(kernels[0] - kernels[1]).max() > 0.01
    zero = jax.tree.map(np.zeros_like, start)
    np.testing.assert_allclose(teacher_scores(table, seeds, raw, still, zero), 0.1, atol=1e-6)


def starts(table, config):
    own = [teacher_start(table, config, seed) for seed in range(2)]
    return jax.tree.map(lambda *parts: np.stack(parts), *own)


def lesson_of(table):
    labels = np.asarray(table.labels)[np.asarray(table.train)]
    return labels, np.ones(labels.shape, np.float32)


def test_a_teacher_reads_the_rows_and_statistics_of_its_own_seed():
    """The two seeds in the other order give the same two teachers."""
    table, few = standard(), CONFIG._replace(epochs=2)
    labels, weights = lesson_of(table)
    turned = table._replace(
        train=table.train[::-1],
        mean=tuple(m[::-1] for m in table.mean),
        scale=tuple(s[::-1] for s in table.scale),
    )
    seeds = jnp.arange(2, dtype=jnp.uint32)
    one = teacher_scores(table, seeds, Lessons(np.arange(2), labels, weights), few)
    two = teacher_scores(turned, seeds[::-1], Lessons(np.array([1, 0]), labels, weights), few)
    assert np.abs(np.asarray(one[0]) - np.asarray(one[1])).max() > 0.1
    np.testing.assert_allclose(one, two, atol=1e-6)
    alone = teacher_scores(table, seeds, Lessons(np.array([1]), labels[1:], weights[1:]), few)
    np.testing.assert_allclose(alone[0], one[1], atol=1e-5)


def test_training_is_adam_s_with_the_rate_of_kdk_on_rows_of_weight_1():
    """PyTorch beside it: all rows a batch, the rate times .1 after 50 % and 80 % of the epochs."""
    torch = pytest.importorskip("torch")
    table = standard()
    labels, weights = lesson_of(table)
    weights = np.random.default_rng(0).integers(0, 2, weights.shape).astype(np.float32)
    config = CONFIG._replace(
        network=MLP((), 10), batch_size=10_000, learning_rate=0.05, temperature=2.0
    )
    start = jax.tree.map(np.zeros_like, starts(table, config))
    seeds = jnp.arange(2, dtype=jnp.uint32)
    found = teacher_scores(table, seeds, Lessons(np.arange(2), labels, weights), config, start)
    for seed in range(2):
        x = np.asarray(table.features[-1], np.float32)[np.asarray(table.train[seed])]
        x = (x - np.asarray(table.mean[-1][seed])) / np.asarray(table.scale[-1][seed])
        x, y = torch.tensor(x.reshape(len(x), -1)), torch.tensor(labels[seed]).long()
        seen = torch.tensor(weights[seed]) > 0
        net = torch.nn.Linear(x.shape[1], 10)
        for p in net.parameters():
            torch.nn.init.zeros_(p)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [5, 8], 0.1)  # of 10 epochs
        for _ in range(config.epochs):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[seen]), y[seen]).backward()
            optimizer.step()
            schedule.step()
        expected = torch.softmax(net(x) / 2.0, 1).detach().numpy()
        np.testing.assert_allclose(found[seed], expected, atol=1e-4)


def test_dropout_acts_while_a_teacher_is_trained_and_not_on_its_scores():
    table = standard()
    labels, weights = lesson_of(table)
    seeds, given = jnp.arange(2, dtype=jnp.uint32), Lessons(np.arange(2), labels, weights)
    dry, wet = (CONFIG._replace(network=MLP((16,), 10, dropout=d), epochs=2) for d in (0.0, 0.5))
    one, two = (teacher_scores(table, seeds, given, config) for config in (dry, wet))
    assert np.abs(np.asarray(one) - np.asarray(two)).max() > 0.01
    still = [config._replace(learning_rate=0.0) for config in (dry, wet)]
    one, two = (teacher_scores(table, seeds, given, config) for config in still)
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_a_teacher_that_cannot_read_the_columns_is_refused_before_training():
    small = tiny(**{"teacher.network": "cnn_gafm"})  # for images of 22 pixels and more
    with pytest.raises(UserError, match=r"^config\.teacher\.hidden=\(8,\) .*options\.hidden"):
        lab.prepare(small)
    small["teacher"]["hidden"] = (64,)
    with pytest.raises(UserError, match=r"^config\.teacher: "):
        lab.prepare(small)
    lab.prepare({**small, "grid": {"undefended": {}}})  # nobody asks it


def test_a_teacher_with_batch_norm_is_refused_batches_of_one_row():
    small = {"teacher.options": {"batch_norm": True}, "attacks": {}, "training.batch_size": 20}
    for size in (11, 2):  # 320 = 29 * 11 + 1: what is left of the rows is no batch
        lab.prepare(tiny(**small, **{"teacher.batch_size": size}))
    with pytest.raises(UserError, match=r"^config\.teacher\.batch_size=1: .* no batch statistics"):
        lab.prepare(tiny(**small, **{"teacher.batch_size": 1}))
    lab.prepare(tiny(**{**small, "teacher.options": {}}, **{"teacher.batch_size": 1}))
