"""A vertical federation on Flower's message API, with the messages of Flower's own example, for ``drills``."""

# pyright: reportMissingImports=false
from __future__ import annotations

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.simulation import run_simulation

import vfljax
from analysis.recipes.flower_server import received, sent

WIDTH, ROUNDS = 8, 30


def run(parts, labels, seed, path):
    """Trains a bottom model at a client for each of ``parts``, and a top model at the server, by rounds of all
    rows in Flower's simulation, and writes the wire to ``path``."""
    parts = [torch.tensor(part).float() for part in parts]
    labels = torch.tensor(labels).float()[:, None]
    client, server = ClientApp(), ServerApp()

    def bottom(context):
        """Returns the client's number, its model and its optimizer, as its state holds them."""
        pos = context.node_config["partition-id"]
        torch.manual_seed(1000 * seed + pos)
        model = torch.nn.Sequential(torch.nn.Linear(parts[pos].shape[1], WIDTH), torch.nn.ReLU())
        if "model" in context.state:
            model.load_state_dict(context.state["model"].to_torch_state_dict())
        return pos, model, torch.optim.SGD(model.parameters(), lr=0.5)

    @client.query("generate_embeddings")
    def generate_embeddings(message, context):
        pos, model, _ = bottom(context)
        arrays = ArrayRecord({"embedding": Array(model(parts[pos]).detach().numpy())})
        content = RecordDict({"arrays": arrays, "config": ConfigRecord({"pos": pos})})
        return Message(content=content, reply_to=message)

    @client.train("apply_gradients")
    def apply_gradients(message, context):
        pos, model, optimizer = bottom(context)
        gradients = message.content["gradients"]["local-gradients"].numpy()
        model(parts[pos]).backward(torch.tensor(gradients))
        optimizer.step()
        context.state["model"] = ArrayRecord(model.state_dict())
        return Message(content=RecordDict(), reply_to=message)

    @server.main()
    def main(grid, context):
        torch.manual_seed(seed)
        wire = vfljax.Recorder()
        top = torch.nn.Linear(WIDTH * len(parts), 1)
        optimizer = torch.optim.Adam(top.parameters(), lr=0.01)
        for _ in range(ROUNDS):
            ask = [
                Message(RecordDict(), node, "query.generate_embeddings")
                for node in grid.get_node_ids()
            ]
            replies = [*grid.send_and_receive(ask)]
            messages = sent(wire, replies)
            places = {r.content["config"]["pos"]: r.metadata.src_node_id for r in replies}
            embeddings = {
                r.content["config"]["pos"]: r.content["arrays"]["embedding"].numpy()
                for r in replies
            }
            z = [torch.tensor(embeddings[pos]).requires_grad_() for pos in range(len(parts))]
            logits = top(torch.cat(z, dim=1))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            answers = []
            for pos, node in places.items():
                arrays = ArrayRecord({"local-gradients": Array(z[pos].grad.numpy())})
                content = RecordDict({"gradients": arrays})
                answers.append(Message(content, node, "train.apply_gradients"))
            received(wire, messages, answers)
            grid.send_and_receive(answers)
        columns = [part.numpy() for part in parts]
        wire.save(path, labels=labels.numpy()[:, 0], columns=columns)

    resources = {"num_cpus": 1, "num_gpus": 0.0}
    backend = {"client_resources": resources, "init_args": {"num_cpus": 2}}
    run_simulation(server, client, len(parts), backend_config=backend)
