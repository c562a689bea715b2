"""BertModel in PyTorch, written from the paper with transformers' module names (its state_dict's names
are the checkpoints'), and Linear(out) on top. Evaluation mode only: there is no dropout."""

import math

import torch  # pyright: ignore[reportMissingImports]
from torch import nn  # pyright: ignore[reportMissingImports]


class Embeddings(nn.Module):
    def __init__(self, vocabulary, positions, hidden):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, hidden)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(2, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, ids):
        places = self.position_embeddings(torch.arange(ids.shape[1]))
        types = self.token_type_embeddings(torch.zeros_like(ids))
        return self.LayerNorm(self.word_embeddings(ids) + places + types)


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))

    def forward(self, x, present):
        batch, length, hidden = x.shape
        depth = hidden // self.heads

        def split(y):
            return y.view(batch, length, self.heads, depth).transpose(1, 2)

        scores = split(self.query(x)) @ split(self.key(x)).transpose(2, 3) / math.sqrt(depth)
        scores = scores.masked_fill(~present[:, None, None, :], -1e30)
        return (scores.softmax(-1) @ split(self.value(x))).transpose(1, 2).reshape(x.shape)


class Residual(nn.Module):
    """transformers' BertSelfOutput and BertOutput."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.dense = nn.Linear(inputs, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=1e-12)

    def forward(self, y, x):
        return self.LayerNorm(x + self.dense(y))


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.self = SelfAttention(hidden, heads)
        self.output = Residual(hidden, hidden)

    def forward(self, x, present):
        return self.output(self.self(x, present), x)


class Dense(nn.Module):
    """transformers' BertIntermediate and BertPooler."""

    def __init__(self, inputs, outputs, activation):
        super().__init__()
        self.dense, self.activation = nn.Linear(inputs, outputs), activation

    def forward(self, x):
        return self.activation(self.dense(x))


class Layer(nn.Module):
    def __init__(self, hidden, heads, intermediate):
        super().__init__()
        self.attention = Attention(hidden, heads)
        self.intermediate = Dense(hidden, intermediate, nn.GELU())
        self.output = Residual(intermediate, hidden)

    def forward(self, x, present):
        x = self.attention(x, present)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    def __init__(self, layers, *sizes):
        super().__init__()
        self.layer = nn.ModuleList(Layer(*sizes) for _ in range(layers))


class BertModel(nn.Module):
    """ids [B, L] -> (the [CLS] vector after each layer, the pooled one [B, hidden])."""

    def __init__(self, vocabulary, positions, hidden, layers, heads, intermediate):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, positions, hidden)
        self.encoder = Encoder(layers, hidden, heads, intermediate)
        self.pooler = Dense(hidden, hidden, torch.tanh)

    def forward(self, ids):
        x, every = self.embeddings(ids), []
        for layer in self.encoder.layer:
            x = layer(x, ids != 0)
            every.append(x[:, 0])
        return every, self.pooler(x[:, 0])
