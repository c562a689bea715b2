"""PyTorch's step of the convolutional bottom that ``analysis.benchmark.convolutions`` measures."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from analysis.benchmark.convolutions import IMAGES, Images


def torch_step(width: int, images: Images = IMAGES) -> Callable[[], float]:
    """``measure() -> milliseconds a step`` of one trial of ResNet, on all threads."""
    torch: Any = importlib.import_module("torch")
    twins: Any = importlib.import_module("tests.reference.torch_nets")
    net = twins.ResNet(images.blocks, width, images.classes)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    height, across, channels = images.image
    x = torch.rand(images.batch, channels, height, across)
    y = torch.randint(images.classes, (images.batch,))

    def measure() -> float:
        began = time.perf_counter()
        for _ in range(images.steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        return (time.perf_counter() - began) / images.steps * 1e3

    measure()
    return measure
