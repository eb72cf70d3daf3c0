"""Train a small model of torch by ``torch.compile`` and in a CUDA graph, for ``run_trial.py``."""

import sys

import torch

EPOCHS = 6


class Model(torch.nn.Module):
    """A model of two layers with a norm, an activation and a residual connection."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        return x + self.second(torch.nn.functional.gelu(self.first(self.norm(x))))


def train(width, rows):
    """Train a compiled model, and return its last loss."""
    torch.manual_seed(0)
    model = torch.compile(Model(width).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(rows, width, device="cuda")
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = (torch.softmax(model(x), 1) * x.sin()).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def replay_graph(n):
    """Capture compiled code into a graph, and launch the graph several times."""
    function = torch.compile(lambda x: (x.exp() + 1).log())
    x = torch.rand(n, device="cuda")
    function(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = function(x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, (x.exp() + 1).log())


if __name__ == "__main__":
    for width, rows in ((32, 16), (64, 33), (128, 64)):
        print(width, rows, train(width, rows))
        sys.stdout.flush()
    for n in (100, 5000):
        replay_graph(n)
