"""The chain of defenses: composition without interference."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from tests import harness
from vfljax import defenses
from vfljax.defenses.core import Defense, TrainingData, chain, per_party
from vfljax.types import DefenseSpec

DATA = TrainingData(jnp.zeros(8, jnp.int32), jnp.zeros((8, 3)), 3)
ZEROS = (jnp.zeros((8, 4)), jnp.zeros((8, 4)))


def context(step=0):
    three_classes = {"labels": jnp.arange(8) % 3, "scores": None, "epoch": jnp.int32(0)}
    return harness.make_context(8, step)._replace(**three_classes)


def gradients(defense, g=ZEROS, step=0):
    """The gradients that a defense's gradient slot sends for ``g``."""
    transform = optax.with_extra_args_support(defense.gradient)
    sent, _ = transform.update(g, transform.init(g), None, embeddings=g, context=context(step))
    return tuple(np.asarray(party) for party in sent)


def init(defense):
    return defense.init(jax.random.key(0), DATA)


def base_loss(active, f, embeddings, targets, context, state):
    return jnp.float32(1), ("logits", "variables", state)


def loss_of(defense, states=None):
    states = init(defense) if states is None else states
    return defense.loss(base_loss)({}, None, (), None, context(), states)


def changing(rule):
    """A defense that treats targets, the value of the loss, and predictions by ``rule``."""

    def wrap(loss_fn):
        def loss(*arguments):
            value, aux = loss_fn(*arguments)
            return rule(value), aux

        return loss

    return Defense(
        targets=lambda targets, context, state: (rule(targets), context, state),
        loss=wrap,
        gradient=per_party(lambda key, g, context: rule(g)),
        read=lambda state, logits: rule(logits),
    )


def counter():
    """A defense with state of its own in the loss slot: how often it was asked."""

    def wrap(loss_fn):
        def loss(*arguments):
            value, (logits, variables, state) = loss_fn(*arguments)
            return value, (logits, variables, state._replace(state=state.state + 1))

        return loss

    return Defense(init=lambda key, data: jnp.int32(0), loss=wrap)


noisy = Defense(gradient=per_party(lambda key, g, context: g + jax.random.normal(key, g.shape)))


def test_draws_are_of_a_member_s_name_the_party_and_the_step_whoever_else_there_is():
    alone = gradients(chain(noise=noisy))
    for same in (
        gradients(chain(idle=Defense(), noise=noisy)),
        gradients(chain(noise=noisy, idle=Defense())),
        gradients(chain(noise=noisy), ZEROS[:1]),  # a party's draw does not depend on the others
    ):
        harness.assert_same_bits(same, alone[: len(same)])
    for other in (gradients(chain(more=noisy)), gradients(chain(noise=noisy), step=1), alone[::-1]):
        assert np.min(np.abs(np.subtract(alone, other))) > 0
    both = gradients(chain(noise=noisy, more=noisy))
    np.testing.assert_allclose(both, np.add(alone, gradients(chain(more=noisy))), atol=1e-6)


def test_the_first_listed_acts_first_is_innermost_in_the_loss_and_reads_last():
    more, double = changing(lambda t: t + 1), changing(lambda t: 2 * t)
    g = (jnp.full((8, 4), 3.0),)
    for members, treated, value, read in (
        ({"more": more, "idle": Defense(), "double": double}, 8, 4, 7),
        ({"double": double, "idle": Defense(), "more": more}, 7, 3, 8),
    ):
        defense = chain(**members)
        assert defense.targets(3.0, context(), init(defense))[0] == treated
        assert np.all(gradients(defense, g)[0] == treated)
        assert loss_of(defense)[0] == value
        assert defense.read(init(defense), 3.0) == read


def test_each_member_has_a_key_of_its_own_in_every_slot_and_sees_the_labels_an_earlier_one_left():
    seen = {}

    def spy(name):
        def targets(targets, context, state):
            seen[name, "targets"] = context
            return targets, context._replace(labels=0 * context.labels), state

        def wrap(loss_fn):
            def loss(active, f, embeddings, targets, context, state):
                seen[name, "loss"] = context
                return loss_fn(active, f, embeddings, targets, context, state)

            return loss

        return Defense(targets=targets, loss=wrap)

    defense = chain(a=spy("a"), b=spy("b"))
    states = init(defense)
    _, after, states = defense.targets(1.0, context(), states)
    defense.loss(base_loss)({}, None, (), None, after, states)
    words = {at: jax.random.key_data(c.key).tolist() for at, c in seen.items()}
    for name in "ab":
        assert words[name, "loss"] == words[name, "targets"]  # whoever stands inside or outside
    assert words["a", "targets"] != words["b", "targets"]
    runs = [jax.random.key_data(seen[name, "loss"].run_key).tolist() for name in "ab"]
    assert runs[0] != runs[1]
    assert np.any(seen["a", "targets"].labels)
    assert not np.any(seen["b", "targets"].labels)
    assert not np.any(after.labels)
    assert jnp.all(jax.random.key_data(after.key) == jax.random.key_data(context().key))


def test_stateful_loss_slots_keep_their_states_apart_and_whoever_is_around_them():
    defense = chain(one=counter(), outer=changing(lambda v: 2 * v), two=counter())
    states = {"one": jnp.int32(10), "outer": (), "two": jnp.int32(20)}
    for more in (1, 2):
        value, (_, _, states) = loss_of(defense, states)
        assert value == 2
        assert states == {"one": 10 + more, "outer": (), "two": 20 + more}


def test_members_prepare_themselves_from_keys_folded_by_name():
    drawn = Defense(init=lambda key, data: jax.random.normal(key, (4,)))
    both, alone = init(chain(a=drawn, b=drawn)), init(chain(b=drawn))
    assert np.all(np.asarray(both["a"]) != np.asarray(both["b"]))
    np.testing.assert_array_equal(both["b"], alone["b"])


def test_later_members_prepare_themselves_with_the_labels_an_earlier_one_drew():
    drawn = Defense(init=lambda key, data: data.labels + 1, labels=lambda state, labels: state)
    watching = Defense(init=lambda key, data: data.labels)
    states = init(chain(first=watching, drawn=drawn, later=watching))
    assert [int(states[name][0]) for name in ("first", "drawn", "later")] == [0, 1, 1]


def test_a_codebook_is_made_of_the_key_of_init_which_takes_it_from_the_data():
    def draw(key, num_classes):
        return {"code": jax.random.normal(key, (num_classes,))}

    def start(key, data):
        return draw(key, data.num_classes) if data.codebook is None else data.codebook

    defense = chain(idle=Defense(), code=Defense(codebook=draw, init=start))
    books = defense.codebook(jax.random.key(0), 3)
    assert list(books) == ["code"]
    harness.assert_same_bits(init(defense)["code"], books["code"])
    other = {"code": {"code": jnp.arange(3)}}
    given = defense.init(jax.random.key(0), DATA._replace(codebook=other))
    harness.assert_same_bits(given["code"], other["code"])


def test_the_readers_of_a_chain_are_those_with_a_read_slot():
    names = ("noise", "cae", "kdk", "class_splitting")
    specs = tuple(map(DefenseSpec, names))
    assert [reader.name for reader in defenses.readers(specs)] == ["cae", "class_splitting"]
    logits = jnp.ones((2, 3))
    assert defenses.reader(specs[:1])({}, logits) is logits
