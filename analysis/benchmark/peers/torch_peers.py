"""PyTorch's ways to train the grid suite's trials, each in a process of its own.

    python -m analysis.benchmark.peers.torch_peers ARGUMENTS    (JSON: form, problem, first, threads, device)

What enters: on standard input a line with a number of seconds, as often as wanted. What leaves: one line
of JSON when the first steps are done, {"ready": version} or {"failed": why}; then, for each line, the
trials' steps and the seconds that they took. The process ends with its standard input. PyTorch records
nothing of what crosses the cut, which vfljax and the least JAX program do.

==============  ===================================================================================
``eager``       trial ``first`` alone: parties and cut gradients apart, ``torch.optim.SGD``
``ensemble``    all trials by ``torch.func``: ``vmap(grad)`` of stacked weights, SGD by hand
``gradient``    the same, its gradient by ``torch.compile``
``compiled``    the same, the whole step by ``torch.compile``, which makes one pass of the update
==============  ===================================================================================
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from analysis.benchmark.peers.problem import MOMENTUM, NETWORKS, WEIGHT_DECAY, Drawn, Problem, draw


class Peer(NamedTuple):
    """One form, ready to train."""

    trials: int
    step: Callable[[int], Any]  # the n-th step from the start
    weights: Callable[[], dict[str, list[tuple[np.ndarray, np.ndarray]]]]  # as ``Drawn.weights``


def eager(torch: Any, problem: Problem, first: int, device: str) -> Peer:
    """Setting ``first`` by modules and optimizers, a batch's gradients handed over the cut."""
    drawn = draw(problem)
    columns = problem.bottom[0]

    def module(name: str) -> Any:
        parts = []
        for kernel, bias in drawn.weights[name]:
            linear = torch.nn.Linear(*kernel.shape[1:], device=device)
            with torch.no_grad():
                linear.weight.copy_(torch.tensor(kernel[first].T))
                linear.bias.copy_(torch.tensor(bias[first]))
            parts += [linear, torch.nn.ReLU()]
        return torch.nn.Sequential(*parts[:-1])

    nets = {name: module(name) for name in NETWORKS}
    optimizers = [
        torch.optim.SGD(
            net.parameters(),
            lr=float(drawn.rates[first]),
            momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY,
            foreach=True,
        )
        for net in nets.values()
    ]
    x, y = _table(torch, drawn, device)
    orders = torch.tensor(drawn.orders[first], dtype=torch.int64, device=device)
    cross_entropy = torch.nn.CrossEntropyLoss()

    def step(number: int) -> Any:
        rows = orders[number % problem.steps]
        features, labels = x[rows], y[rows]
        sent = [nets["a"](features[:, :columns]), nets["b"](features[:, columns:])]
        cut = [z.detach().requires_grad_() for z in sent]
        loss = cross_entropy(nets["top"](torch.cat(cut, 1)), labels)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for z, received in zip(sent, cut, strict=True):
            z.backward(received.grad)
        for optimizer in optimizers:
            optimizer.step()
        return cut

    def weights() -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
        return {
            name: [
                (
                    layer.weight.detach().cpu().numpy().T[None],
                    layer.bias.detach().cpu().numpy()[None],
                )
                for layer in list(net)[::2]
            ]
            for name, net in nets.items()
        }

    return Peer(1, step, weights)


def ensemble(torch: Any, problem: Problem, form: str, device: str) -> Peer:
    """All trials at once: gradients by ``vmap(grad)``, the update by hand and in place; what of it is
    compiled the ``form`` says."""
    drawn = draw(problem)
    columns = problem.bottom[0]
    weights = {
        f"{name}{place}{part}": torch.tensor(array, device=device)
        for name in NETWORKS
        for place, layer in enumerate(drawn.weights[name])
        for part, array in zip(("kernel", "bias"), layer, strict=True)
    }
    velocity = {name: torch.zeros_like(w) for name, w in weights.items()}
    rates = {
        name: torch.tensor(drawn.rates, device=device).view(-1, *[1] * (w.ndim - 1))
        for name, w in weights.items()
    }
    x, y = _table(torch, drawn, device)
    # [steps, S, B]: what the trials of one step read lies together
    orders = torch.tensor(drawn.orders, dtype=torch.int64, device=device).transpose(0, 1)
    orders = orders.contiguous()

    def network(w: dict[str, Any], name: str, inputs: Any) -> Any:
        last = len(drawn.weights[name]) - 1
        for place in range(last + 1):
            inputs = inputs @ w[f"{name}{place}kernel"] + w[f"{name}{place}bias"]
            inputs = inputs if place == last else torch.relu(inputs)
        return inputs

    def loss(w: dict[str, Any], features: Any, labels: Any) -> Any:
        mine = network(w, "a", features[:, :columns])
        theirs = network(w, "b", features[:, columns:])
        logits = network(w, "top", torch.cat([mine, theirs], 1))
        return torch.nn.functional.cross_entropy(logits, labels)

    gradient = torch.func.vmap(torch.func.grad(loss))
    gradient = torch.compile(gradient) if form == "gradient" else gradient

    def update(w: dict[str, Any], v: dict[str, Any], rows: Any) -> None:
        gradients = gradient(w, x[rows], y[rows])
        with torch.no_grad():
            for name in w:
                v[name].mul_(MOMENTUM).add_(gradients[name]).add_(w[name], alpha=WEIGHT_DECAY)
                w[name].sub_(v[name] * rates[name])

    update = torch.compile(update) if form == "compiled" else update

    def step(number: int) -> None:
        update(weights, velocity, orders[number % problem.steps])

    def by_network() -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
        arrays = {name: w.cpu().numpy() for name, w in weights.items()}
        return {
            name: [
                (arrays[f"{name}{place}kernel"], arrays[f"{name}{place}bias"])
                for place in range(len(drawn.weights[name]))
            ]
            for name in NETWORKS
        }

    return Peer(problem.trials, step, by_network)


def _table(torch: Any, drawn: Drawn, device: str) -> tuple[Any, Any]:
    """Both parties' columns side by side [N, 2 F], and the labels [N]."""
    x = torch.tensor(np.concatenate(drawn.features, axis=1), device=device)
    return x, torch.tensor(drawn.labels, dtype=torch.int64, device=device)


def make(torch: Any, form: str, problem: Problem, first: int, device: str) -> Peer:
    """The form of that name."""
    if form == "eager":
        return eager(torch, problem, first, device)
    return ensemble(torch, problem, form, device)


def main(arguments: str) -> None:
    """The process: see the module."""
    asked = json.loads(arguments)
    device = asked["device"]
    try:
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(asked["threads"])
        problem = Problem.of(asked["problem"])
        peer = make(torch, asked["form"], problem, asked["first"], device)
        for number in range(problem.steps):
            peer.step(number)
    except Exception as error:  # of any layer of PyTorch: the suite goes on without this row
        lines = str(error).strip().splitlines()
        print(json.dumps({"failed": f"{type(error).__name__}: {(lines or [''])[0]}"}), flush=True)
        return

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    print(json.dumps({"ready": torch.__version__}), flush=True)
    for line in sys.stdin:
        steps, seconds = 0, float(line)
        wait()
        began = time.perf_counter()
        while steps == 0 or time.perf_counter() - began < seconds:
            for number in range(problem.steps):
                peer.step(number)
            wait()
            steps += problem.steps
        took = time.perf_counter() - began
        print(json.dumps({"steps": steps * peer.trials, "seconds": took}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
