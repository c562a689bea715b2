"""A SplitNN on NVFlare's collab API, with the messages of NVFlare's own example, for ``drills``."""

# pyright: reportMissingImports=false, reportOptionalMemberAccess=false
from __future__ import annotations

import sys

import numpy as np
import torch
from nvflare.collab import CollabRecipe, collab
from nvflare.recipe import SimEnv

from analysis.recipes.nvflare_splitnn import Recorded

WIDTH, BATCH, STEPS = 16, 64, 150


class Server:
    """Starts the training at the passive site."""

    @collab.main
    def run(self):
        return collab.get_clients(["site-1"])[0](timeout=600.0).run_splitnn()


class SplitNNClient:
    """A bottom model at site-1, which draws batches with replacement, and a top model at site-2."""

    @collab.init
    def initialize(self):
        arrays = np.load(collab.get_app_prop("table"))
        self.seed, self.file = collab.get_app_prop("seed"), collab.get_app_prop("wire_file")
        torch.manual_seed(self.seed)
        bottom = torch.nn.Sequential(torch.nn.Linear(arrays["x"].shape[1], WIDTH), torch.nn.ReLU())
        top = torch.nn.Linear(WIDTH, 2)
        self.x, self.labels = torch.tensor(arrays["x"]).float(), torch.tensor(arrays["y"]).long()
        self.model = bottom if collab.site_name == "site-1" else top
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    @collab.publish
    def run_splitnn(self):
        label_site = collab.get_clients(["site-2"])[0]
        draws = np.random.default_rng(self.seed)
        for _ in range(STEPS):
            rows = draws.integers(0, len(self.x), BATCH)
            z = self.model(self.x[rows])
            sent = z.detach().to(torch.float16)
            gradients, _ = label_site(timeout=600.0).compute_loss(rows, sent)
            self.optimizer.zero_grad()
            z.backward(gradients.float())
            self.optimizer.step()
        return label_site(timeout=600.0).save_model()

    @collab.publish
    def compute_loss(self, batch_indices, activations):
        z = activations.float().requires_grad_()
        loss = torch.nn.functional.cross_entropy(self.model(z), self.labels[batch_indices])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return z.grad.to(torch.float16), {"loss": loss.item()}


class Client(Recorded, SplitNNClient):
    """Records, and saves the wire where the example saves its models."""

    @collab.publish
    def save_model(self):
        self.wire.save(self.file, labels=self.labels, columns={"site-1": self.x})
        return self.file


def run(x, labels, seed, path):
    """Trains for ``STEPS`` batches in NVFlare's simulator, and writes the wire to ``path``."""
    table = path.with_suffix(".table.npz")
    np.savez(table, x=x, y=labels)
    recipe = CollabRecipe("splitnn", server=Server(), client=Client(), min_clients=2)
    for name, value in {"table": str(table), "wire_file": str(path), "seed": seed}.items():
        recipe.set_client_prop(name, value)
    sites = ["site-1", "site-2"]
    recipe.set_per_site_config({site: {} for site in sites})
    workspace = str(path.with_suffix(".simulated"))
    done = recipe.run(SimEnv(clients=sites, workspace_root=workspace, log_config="ERROR"))
    print(done.get_status())
    if not path.exists():
        sys.exit(f"nothing was recorded: {workspace} holds the logs")
