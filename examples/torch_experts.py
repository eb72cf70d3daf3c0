"""Define the products of a mixture of experts as an operator of torch, in a model that trains, with the kernel of
grouped_gemm.py.

The numbers of tokens of the experts stay on the device, in eager mode and under torch.compile. With a simulated GPU,
the operator also accepts CPU tensors.
"""

import grouped_gemm
from _example import start, torch
from _training import compare, losses_of


def compiled(compile):
    """Return the kernel of a device."""
    return compile(grouped_gemm.SOURCE, "grouped_gemm", constants=grouped_gemm.CONSTANTS)


def multiply(launch, tokens, weights, counts):
    """Return the product of each expert's tokens and its weights; the tokens of expert 0 are the first rows."""
    side, ctas, threads, _ = map(launch.parameters_of(compiled).constants.get, grouped_gemm.CONSTANTS)
    memory = tokens.new_empty(side + tokens.shape[0], weights.shape[1])
    repeated = memory.unfold(0, side, 1).transpose(1, 2)  # The view repeats rows, so that a store may end at any row.
    drawn = counts.new_zeros(1)
    steps = -(-weights.shape[2] // side)
    config = {"grid": launch.multiprocessor_count // ctas * ctas, "cluster": ctas, "block": threads}
    arguments = tokens, weights.flatten(0, 1), counts, repeated, drawn, weights.shape[0], weights.shape[1], steps
    launch(lambda: config, compiled, *arguments)
    return memory[side:].clone()  # An operator must return an output with its own memory.


def keep(ctx, inputs, output):
    """Save the values that the gradient needs."""
    ctx.save_for_backward(*inputs)


def gradients(ctx, grad):
    """Return the gradients of tokens and weights, which torch's own operators compute."""
    tokens, weights, counts = ctx.saved_tensors
    rows = torch.arange(tokens.shape[0], device=tokens.device)
    expert = torch.bucketize(rows, counts.cumsum(0), right=True)
    is_of = torch.nn.functional.one_hot(expert, weights.shape[0]).to(tokens.dtype)
    of_tokens = torch.bmm(grad[:, None], weights[expert])[:, 0]
    return of_tokens, torch.einsum("te,tn,tk->enk", is_of, grad, tokens), None


def experts_operator(simulator=None):
    """Make the operator examples::experts(tokens, weights, counts) for bfloat16, bfloat16 and int32."""
    from cuda_tma.torch import operator

    def typed(launch, tokens: torch.Tensor, weights: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return multiply(launch, tokens, weights, counts)

    return operator("examples::experts", backward=gradients, setup_context=keep, simulator=simulator)(typed)


def reference(tokens, weights, counts):
    """Return the same products by torch, with float32 accumulators."""
    rows = torch.arange(tokens.shape[0], device=tokens.device)
    expert = torch.bucketize(rows, counts.cumsum(0), right=True)
    return torch.bmm(weights.float()[expert], tokens.float()[..., None])[..., 0].to(tokens.dtype)


def train(multiply, device, backend, steps=2, sizes=(50, 3, 64, 72)):
    """Train a layer of experts with a fixed router for several steps, and return the losses of the steps."""
    count, experts, depth, rows = sizes
    torch.manual_seed(0)
    weights = (torch.randn(experts, rows, depth) / 8).to(device).requires_grad_()
    x, target, router = torch.randn(count, depth), torch.randn(count, rows), torch.randn(depth, experts)
    x, target, router = (some.to(device) for some in (x, target, router))

    def loss_of(weights):
        expert = (x @ router).argmax(1)
        order = expert.argsort()
        counts = torch.nn.functional.one_hot(expert, experts).sum(0).int()
        output = multiply(x[order].bfloat16(), weights.bfloat16(), counts)
        return (output.float() - target[order]).square().mean()

    return losses_of(loss_of, [weights], 10.0, backend, steps)


def main():
    """Train two steps on the GPU, and compare the losses with those of torch."""
    compare(train, experts_operator(), reference)


if __name__ == "__main__":
    start(main, __doc__)
