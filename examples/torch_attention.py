"""Define attention as an operator of torch, in a model that trains, with the kernel of attention.py.

The operator returns the output and the logarithm of each query's sum of exponentials, from which torch's own operators
compute the gradient. With a simulated GPU, it also accepts CPU tensors.
"""

from functools import cache

import attention
from _example import start, torch
from _training import compare, losses_of

# The kernel takes numbers in place of a structure, so that torch.compile can make the number of tokens symbolic.
EDITS = {
    "int count, Problem problem) {\n    auto& shared = dynamic_shared": (
        "int count, int queries, int keys,\n          int heads, int heads_of_kv, float scale) {\n"
        "    const Problem problem{queries, keys, heads, heads_of_kv, scale};\n    auto& shared = dynamic_shared"
    ),
}


def operator_source():
    """Return the source of attention.py's kernel, with the fields of the problem as parameters."""
    source = attention.SOURCE
    for before, after in EDITS.items():
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


@cache
def kernel_of(d, causal):
    """Return a function that compiles the kernel of one d."""
    constants = {name: text.format(d) for name, text in attention.CONSTANTS.items()}
    name = f"attention<{d}, {str(causal).lower()}>"
    return lambda compile: compile(operator_source(), name, constants=constants)


def tasks_of(q, k, tile, causal, ctas):
    """Return (batch, head, first query, tiles of keys) for each task, and one empty task for each CTA.

    `tile` contains the numbers of queries and of keys of a tile. The longest tasks of a head come first.
    """
    batches, heads, queries, keys = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
    first = torch.arange(-(-queries // tile["queries"]) - 1, -1, -1, device=q.device) * tile["queries"]
    seen = (first + tile["queries"] + keys - queries).clamp(max=keys) if causal else torch.full_like(first, 1) * keys
    tiles = ((seen + tile["keys"] - 1) // tile["keys"]).clamp(min=1)
    index = torch.arange(batches * heads, device=q.device)[:, None].expand(-1, first.shape[0])
    rows = torch.stack([index // heads, index % heads, first.expand_as(index), tiles.expand_as(index)], -1)
    return torch.cat([rows.flatten(0, 1), rows.new_zeros(ctas, 4)]).int()


def attend(launch, q, k, v, causal):
    """Return softmax(q @ k.T / sqrt(d)) @ v, and the logarithm of each query's sum of exponentials."""
    kernel = kernel_of(int(q.shape[3]), causal)
    tile = launch.parameters_of(kernel).constants
    output, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    ctas = launch.multiprocessor_count
    tasks, drawn = tasks_of(q, k, tile, causal, ctas), q.new_zeros(1, dtype=torch.int32)
    problem = q.shape[2], k.shape[2], q.shape[1], q.shape[1] // k.shape[1], q.shape[3] ** -0.5
    config = {"grid": ctas, "cluster": 1, "block": tile["threads"]}
    launch(config, kernel, q, k, v, output, lse, tasks, drawn, tasks.shape[0], *problem)
    return output, lse


def keep(ctx, inputs, output):
    """Save the values that the gradient needs."""
    ctx.causal = inputs[3]
    ctx.save_for_backward(*inputs[:3], *output)


def gradients(ctx, grad, _):
    """Return the gradients of q, k and v, which torch's own operators compute in float32."""
    q, k, v, output, lse = ctx.saved_tensors
    each, scale = q.shape[1] // k.shape[1], q.shape[3] ** -0.5
    grad, output, query = grad.float(), output.float(), q.float()
    key, value = (some.float().repeat_interleave(each, 1) for some in (k, v))
    scores = query @ key.mT * scale
    if ctx.causal:
        scores = scores.masked_fill(~torch.ones_like(scores).tril(k.shape[2] - q.shape[2]).bool(), -torch.inf)
    weights = torch.exp(scores - lse[..., None])
    of_scores = weights * (grad @ value.mT - (grad * output).sum(-1, keepdim=True)) * scale
    of_heads = of_scores.mT @ query, weights.mT @ grad
    of_key, of_value = (some.unflatten(1, (k.shape[1], each)).sum(2) for some in of_heads)
    return (of_scores @ key).to(q.dtype), of_key.to(k.dtype), of_value.to(v.dtype), None


def attention_operator(simulator=None):
    """Make the operator examples::attention(q, k, v, causal) for bfloat16."""
    from cuda_tma.torch import operator

    def typed(
        launch, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return attend(launch, q, k, v, causal)

    return operator("examples::attention", backward=gradients, setup_context=keep, simulator=simulator)(typed)


def reference(q, k, v, causal):
    """Return the output of torch's attention, computed in float32 for CPU tensors, and no sums of exponentials."""
    exact = [some.float() for some in (q, k, v)]
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(*exact, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]).to(q.dtype), None


def train(attend, device, backend, steps=2, sizes=(1, 70, 2, 64)):
    """Train a layer of causal attention for several steps, and return the losses of the steps."""
    batch, tokens, heads, d = sizes
    torch.manual_seed(0)
    weights = [(torch.randn(heads * d, heads * d) / 8).to(device).requires_grad_() for _ in range(4)]
    x, target = (torch.randn(batch, tokens, heads * d).to(device) for _ in range(2))

    def loss_of(*weights):
        *inputs, last = (weight.bfloat16() for weight in weights)
        q, k, v = ((x.bfloat16() @ some).unflatten(-1, (heads, d)).transpose(1, 2) for some in inputs)
        output, _ = attend(q, k, v, True)
        return ((output.transpose(1, 2).flatten(2) @ last).float() - target).square().mean()

    return losses_of(loss_of, weights, 1.0, backend, steps)


def main():
    """Train two steps on the GPU, and compare the losses with those of torch."""
    compare(train, attention_operator(), reference)


if __name__ == "__main__":
    start(main, __doc__)
