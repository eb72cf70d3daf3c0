"""The training loop of the examples that make operators of torch, and the comparison with torch."""

from _example import torch

import cuda_tma


def losses_of(loss_of, weights, rate, backend, steps):
    """Compile a function of weights to a loss, train the weights for some steps, and return the losses of the steps."""
    optimizer, losses = torch.optim.SGD(weights, lr=rate), []
    model = torch.compile(loss_of, fullgraph=True, backend=backend)
    for _ in range(steps):
        loss = model(*weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compare(train, operator, reference):
    """Train two steps on the GPU with an operator, and compare the losses with those of torch."""
    cuda_tma.Device().set_current()
    ours = train(operator, "cuda", "aot_eager")
    theirs = train(reference, "cuda", "aot_eager")
    assert all(abs(one - other) < 0.02 for one, other in zip(ours, theirs, strict=True)), (ours, theirs)
    assert ours[1] < ours[0]
    print(f"ok: losses {ours[0]:.4f} and {ours[1]:.4f}; by torch {theirs[0]:.4f} and {theirs[1]:.4f}")
