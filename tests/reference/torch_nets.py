"""The networks in PyTorch, written from their papers; ResNets with torchvision's module names."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
nn = torch.nn


class Block(nn.Module):
    def __init__(self, channels, width, stride, bottleneck, pad):
        super().__init__()
        if bottleneck:
            plan = [(width, 1, 1), (width, 3, stride), (4 * width, 1, 1)]
        else:
            plan = [(width, 3, stride), (width, 3, 1)]
        before = channels
        for i, (after, size, step) in enumerate(plan, start=1):
            self.add_module(f"conv{i}", convolution(before, after, size, step))
            self.add_module(f"bn{i}", nn.BatchNorm2d(after))
            before = after
        self.count, self.stride, self.more = len(plan), stride, before - channels
        if not pad and (stride != 1 or self.more):
            down = convolution(channels, before, 1, stride), nn.BatchNorm2d(before)
            self.downsample = nn.Sequential(*down)

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(y))
            y = y.relu() if i < self.count else y
        if hasattr(self, "downsample"):
            x = self.downsample(x)
        elif self.stride != 1 or self.more:
            half = self.more // 2
            x = nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, self.more - half))
        return (x + y).relu()


class ResNet(nn.Module):
    def __init__(self, blocks, width, out, bottleneck=False, imagenet=False, pad=False, channels=3):
        super().__init__()
        size, stride = (7, 2) if imagenet else (3, 1)
        self.conv1, self.bn1 = convolution(channels, width, size, stride), nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, 2, 1) if imagenet else nn.Identity()
        self.stages, before = len(blocks), width
        for s, count in enumerate(blocks):
            layer = []
            for b in range(count):
                step = 2 if s and not b else 1
                layer.append(Block(before, width * 2**s, step, bottleneck, pad))
                before = width * 2**s * (4 if bottleneck else 1)
            self.add_module(f"layer{s + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(before, out)

    def forward(self, x):
        x = self.pool(self.bn1(self.conv1(x)).relu())
        for s in range(self.stages):
            x = self.get_submodule(f"layer{s + 1}")(x)
        return self.fc(x.mean((2, 3)))


def convolution(before, after, size, stride):
    return nn.Conv2d(before, after, size, stride, size // 2, bias=False)


def cnn(channels, hidden, out, padding, image, linear=True):
    """``image``: (channels, height, width)."""
    layers, (before, height, width) = [], image
    for after in channels:
        layers += [nn.Conv2d(before, after, 3, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]
        height, width = (height - 2 + 2 * padding) // 2, (width - 2 + 2 * padding) // 2
        before = after
    layers.append(nn.Flatten())
    before *= height * width
    for after in hidden:
        layers += [nn.Linear(before, after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, *([nn.Linear(before, out)] if linear else []))


def mlp(inputs, hidden, out, batch_norm=False, dropout=0.0, activation=nn.ReLU):
    layers = []
    for width in hidden:
        layers.append(nn.Linear(inputs, width))
        if batch_norm:
            layers.append(nn.BatchNorm1d(width))
        layers += [activation(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, out))


class WideDeep(nn.Module):
    """One embedding a column, as in the papers; columns of size 0 hold numbers."""

    def __init__(self, vocabulary, embedding, hidden, out, batch_norm=False, dropout=0.0):
        super().__init__()
        self.codes = [j for j, v in enumerate(vocabulary) if v]
        self.numbers = [j for j, v in enumerate(vocabulary) if not v]
        sizes = [vocabulary[j] for j in self.codes]
        self.deep_tables = nn.ModuleList([nn.Embedding(v, embedding) for v in sizes])
        self.wide_tables = nn.ModuleList([nn.Embedding(v, out) for v in sizes])
        inputs = embedding * len(sizes) + len(self.numbers)
        self.deep = mlp(inputs, hidden, out, batch_norm, dropout)
        self.wide = nn.Linear(len(self.numbers), out)

    def forward(self, x):
        codes, numbers = x[:, self.codes].long(), x[:, self.numbers]
        parts = [table(codes[:, i]) for i, table in enumerate(self.deep_tables)]
        wide = sum(table(codes[:, i]) for i, table in enumerate(self.wide_tables))
        return self.deep(torch.cat([*parts, numbers], 1)) + wide + self.wide(numbers)


def randomize(net, seed):
    """Every weight and running statistic random, so that no two can be confused."""
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor, scale):
        return torch.randn(tensor.shape, generator=generator) * scale

    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if name.endswith("running_var"):
                tensor.copy_(1 + torch.rand(tensor.shape, generator=generator))
            elif tensor.is_floating_point() and tensor.ndim > 1:
                fan_in = tensor[0].numel()
                tensor.copy_(normal(tensor, (2 / fan_in) ** 0.5))
            elif tensor.is_floating_point():
                scale = name.endswith("weight")  # of a batch norm
                tensor.copy_(float(scale) + normal(tensor, 0.2))
    return net


def in_training(net, x):
    """A forward pass in training mode that moves running variances by the biased batch variance, as Flax
    does; PyTorch moves them by the unbiased one."""
    norms = [m for m in net.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    before = {norm: norm.running_var.clone() for norm in norms}

    def biased(norm, inputs, out):
        rows = inputs[0].numel() // inputs[0].shape[1]  # B H W
        moved = norm.running_var - 0.9 * before[norm]
        norm.running_var.data = 0.9 * before[norm] + moved * (rows - 1) / rows

    hooks = [norm.register_forward_hook(biased) for norm in norms]
    out = net.train()(x)
    for hook in hooks:
        hook.remove()
    return out


KINDS = {"Conv2d": "Conv", "Linear": "Dense", "BatchNorm1d": "BatchNorm"}


def variables_of(net):
    """A Sequential's weights and statistics as ours, by the names that Flax gives them; copies."""
    params, statistics = {}, {}
    for layer in net:
        kind = KINDS.get(type(layer).__name__)
        if kind is None:
            continue
        name = f"{kind}_{sum(known.startswith(kind) for known in params)}"
        weight, bias = (np.array(p.detach()) for p in (layer.weight, layer.bias))
        if kind == "BatchNorm":
            params[name] = {"scale": weight, "bias": bias}
            mean, var = np.array(layer.running_mean), np.array(layer.running_var)
            statistics[name] = {"mean": mean, "var": var}
        else:
            kernel = weight.transpose(2, 3, 1, 0) if weight.ndim == 4 else weight.T
            params[name] = {"kernel": kernel, "bias": bias}
    return {"params": params} | ({"batch_stats": statistics} if statistics else {})


def gradients_of(net):
    """``net`` with its gradients in the place of its weights."""
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(p.grad)
    return net
