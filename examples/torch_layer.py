"""Define relu(x @ weight.T + bias) as an operator of torch, in a model that trains, with the kernel of gemm.py.

The operator has a gradient, and works under torch.compile. With a simulated GPU, it also accepts CPU tensors.
"""

import gemm
from _example import start, torch
from _training import compare, losses_of

# The accumulators of a thread are pairs of adjacent columns (PTX ISA, "Register Fragments for wgmma").
FUSED = """#pragma unroll
        for (int j = 0; j < TILE_N / 2; ++j) {
            const int column = tile.n + j / 4 * 8 + threadIdx.x % 4 * 2 + j % 2;
            sums[j] = fmaxf(sums[j] + (column < columns ? bias[column] : 0), 0);
        }
        out.take(sums, c_map"""
EDITS = {
    "        out.take(sums, c_map": FUSED,
    "const TiledMap<C>& c_map, Tiles tiles, int k_tiles) {": (
        "const TiledMap<C>& c_map, const float* bias, int columns, Tiles tiles, int k_tiles) {"
    ),
    "     int clusters_down,": "     const float* bias, int columns, int clusters_down,",
    "consume(shared, c_map, tiles": "consume(shared, c_map, bias, columns, tiles",
}


def layer_source():
    """Return the source of gemm.py's kernel with another epilogue."""
    source = gemm.SOURCE
    for before, after in EDITS.items():
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


def compiled(compile):
    """Return the kernel of a device, and the numbers of a launch."""
    return compile(layer_source(), "gemm", constants={"cluster": "CLUSTER", "threads": "(CONSUMERS + 1) * 128"})


def tiles(launch, a_map, b_map):
    """Return the clusters' tiles of the output (down, across), and the steps of K."""
    parameters = launch.parameters_of(compiled)
    (tile_m, tile_k), (share_n, _) = (parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    cluster = parameters.constants["cluster"]
    (m, k), n = a_map.shape, b_map.shape[0]
    return -(-m // (tile_m * cluster)), -(-n // (share_n * cluster)), -(-k // tile_k)


def configuration(launch, a_map, b_map):
    """Return a configuration with one cluster per tile, up to the number that fits on the GPU."""
    constants = launch.parameters_of(compiled).constants
    down, across, _ = tiles(launch, a_map, b_map)
    clusters = min(down * across, launch.multiprocessor_count // constants["cluster"])
    return {"grid": clusters * constants["cluster"], "block": constants["threads"]}


def keep(ctx, inputs, output):
    """Save the values that the gradient needs."""
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output)


def gradients(ctx, grad):
    """Return the gradients of x, weight and bias, which torch's own operators compute."""
    x, weight, output = ctx.saved_tensors
    grad = grad * (output > 0)
    return grad @ weight, grad.T @ x, grad.float().sum(0)


def layer_operator(simulator=None):
    """Make the operator examples::linear_relu(x, weight, bias) for bfloat16, bfloat16 and float32."""
    from cuda_tma.torch import operator

    return operator(
        "examples::linear_relu",
        compiled,
        outputs={"c_map": lambda a_map, b_map: a_map.new_empty(a_map.shape[0], b_map.shape[0])},
        values={
            "columns": lambda b_map: b_map.shape[0],
            "clusters_down": lambda launch, a_map, b_map: tiles(launch, a_map, b_map)[0],
            "across": lambda launch, a_map, b_map: tiles(launch, a_map, b_map)[1],
            "k_tiles": lambda launch, a_map, b_map: tiles(launch, a_map, b_map)[2],
        },
        config=configuration,
        backward=gradients,
        setup_context=keep,
        simulator=simulator,
    )


def train(linear_relu, device, backend, steps=2, sizes=(40, 64, 48, 16)):
    """Train a model of two layers for several steps, and return the losses of the steps."""
    batch, width, hidden, classes = sizes
    torch.manual_seed(0)
    shapes = ((hidden, width), (hidden,), (classes, hidden), (classes,))
    weights = [(torch.randn(*shape) / 8).to(device).requires_grad_() for shape in shapes]
    x, target = torch.randn(batch, width).bfloat16().to(device), torch.randint(classes, (batch,)).to(device)

    def loss_of(w1, b1, w2, b2):
        scores = linear_relu(linear_relu(x, w1.bfloat16(), b1), w2.bfloat16(), b2)
        return torch.nn.functional.cross_entropy(scores.float(), target)

    return losses_of(loss_of, weights, 1.0, backend, steps)


def reference(x, weight, bias):
    """Return the output of the same layer in torch, with float32 accumulators."""
    return torch.relu(x.float() @ weight.float().T + bias).to(x.dtype)


def main():
    """Train two steps on the GPU, and compare the losses with those of torch."""
    compare(train, layer_operator(), reference)


if __name__ == "__main__":
    start(main, __doc__)
