"""Tests of torch scripts with ``device="cuda"`` on a machine without a GPU. Each script runs in a fork of a process
that has loaded torch."""

from __future__ import annotations

import pytest

from tests.support.adapted import Ran, ran_apart

pytest.importorskip("torch")

BEGIN = "import threading\nimport torch\nx = torch.ones(3, 4, device='cuda')\nc = torch.ones(3, 4)\n"
CUDA = "device(type='cuda', index=0)"
CPU = "device(type='cpu')"


EXPRESSIONS = {
    "x.device": CUDA,
    "c.device": CPU,
    "(x.is_cuda, x.is_cpu, c.is_cuda, x.get_device())": "(True, False, False, 0)",
    "(x + 1).device": CUDA,
    "x.T.device": CUDA,
    "x[1:].device": CUDA,
    "torch.nn.functional.softmax(x, 1).device": CUDA,
    "torch.topk(x, 2).values.device": CUDA,
    "torch.split(x, 2)[0].device": CUDA,
    "c.copy_(x).device": CPU,
    "x.cpu().device": CPU,
    "torch.empty(0).set_(x.untyped_storage().cpu(), 0, (3, 4)).device": CPU,
    "torch.empty(0).set_(c.untyped_storage().cuda(), 0, (3, 4)).device": CUDA,
    "(x.untyped_storage().cuda() is x.untyped_storage(), x.untyped_storage().cpu().tolist()[3])": "(True, 63)",
    "x.to('cpu', torch.int32).dtype": "torch.int32",
    "x.to(torch.bfloat16).device": CUDA,
    "x.to('cuda') is x": "True",
    "c.to(device='cuda', dtype=torch.float16, non_blocking=True).device": CUDA,
    "c.to(x).device": CUDA,
    "c.cuda().fill_(5).sum().item() == c.sum().item()": "False",
    "c.pin_memory().is_pinned()": "True",
    "torch.as_tensor([1, 2], device='cuda').device": CUDA,
    "torch.from_numpy(c.numpy()).to(torch.device('cuda:0')).device": CUDA,
    "torch.empty_like(x).device": CUDA,
    "torch.zeros_like(x, device='cpu').device": CPU,
    "x.new_zeros(2).device": CUDA,
    "x.type()": "'torch.cuda.FloatTensor'",
    "torch.randn(2, generator=torch.Generator(device='cuda').manual_seed(0), device='cuda').device": CUDA,
    "isinstance(torch.default_generator, torch.Generator)": "True",
    "torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device()": "(True, 1, 0)",
    "torch.cuda.get_device_capability()": "(9, 0)",
    "torch.cuda.get_device_properties(0).multi_processor_count": "8",
    "torch.cuda.get_device_properties('cuda').warp_size": "32",
    "torch.cuda.mem_get_info()[0] > 0": "True",
    "torch.cuda.synchronize()": "None",
    "torch.testing.assert_close(x + 0, x)": "None",
    "x.data_ptr() % 512, x[1].data_ptr() - x.data_ptr()": "(0, 16)",
    "torch.nn.Linear(4, 2).to('cuda').weight.device": CUDA,
    "torch.nn.Linear(4, 2, device='cuda')(x).device": CUDA,
    "torch.jit.script(lambda y: y * 2)(x).device": CUDA,
}
PRINTED = "".join(f"print(repr(({text})))\n" for text in EXPRESSIONS)


PROGRAMS = {
    "a tensor is printed with its device": ("print(x[0])", "tensor([1., 1., 1., 1.], device='cuda:0')"),
    "the default device": (
        "torch.set_default_device('cuda'); a = torch.zeros(1); torch.set_default_device(None); "
        "print(a.device, torch.zeros(1).device)",
        "cuda:0 cpu",
    ),
    "a device as a context": ("with torch.device('cuda'): a = torch.zeros(1)\nprint(a.device)", "cuda:0"),
    "contexts of torch.cuda": (
        "s = torch.cuda.Stream()\nwith torch.cuda.device(0), torch.cuda.stream(s): a = x * 2\n"
        "torch.cuda.current_stream().wait_stream(s)\nprint(a.device)",
        "cuda:0",
    ),
    "a thread": (
        "def run(): print((torch.ones(1, device='cuda') * 2).device)\n"
        "t = threading.Thread(target=run); t.start(); t.join()",
        "cuda:0",
    ),
    "a backward function of the user": (
        "class Twice(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, a): return a * 2\n"
        "    @staticmethod\n"
        "    def backward(ctx, g): \n"
        "        print(g.device, (g * 2).device, torch.empty(1, device=g.device).device); return g * 2\n"
        "a = torch.ones(3, device='cuda', requires_grad=True)\n"
        "Twice.apply(a).sum().backward(); print(a.grad)",
        "cuda:0 cuda:0 cuda:0\ntensor([2., 2., 2.], device='cuda:0')",
    ),
    "an optimizer": (
        "m = torch.nn.Linear(4, 1, device='cuda'); o = torch.optim.SGD(m.parameters(), 0.1)\n"
        "m(x).sum().backward(); o.step(); print(m.weight.grad.device)",
        "cuda:0",
    ),
    "a file": (
        "import io\nf = io.BytesIO(); torch.save(x, f); f.seek(0); print(torch.load(f, map_location='cuda').device)",
        "cuda:0",
    ),
    "a time": (
        "a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2)); a.record(); b.record()\n"
        "print(a.elapsed_time(b))",
        "nan",
    ),
}
REFUSED = {
    "torch.cuda.CUDAGraph()": "torch.cuda.CUDAGraph needs a GPU",
    "with torch.cuda.graph(None): pass": "torch.cuda.graph needs a GPU",
    "torch.zeros(1, device='cuda:1')": "invalid device ordinal: cuda:1",
    "x.numpy()": "can't convert cuda:0 device type tensor to numpy",
    "from torch.utils.cpp_extension import load_inline; load_inline('a', '', cuda_sources=' ')": "needs a GPU",
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    folder = tmp_path_factory.mktemp("scripts")
    texts = [PRINTED, *(text for text, _ in PROGRAMS.values()), *REFUSED]
    paths = [folder / f"script{number}.py" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(BEGIN + text)
    return dict(zip(texts, ran_apart(paths, "torch"), strict=True))


def test_expressions(scripts):
    done = scripts[PRINTED]
    assert done.status == 0, done.errors
    assert dict(zip(EXPRESSIONS, done.output.splitlines(), strict=True)) == EXPRESSIONS
    assert done.notes == ["torch.jit.script does not compile here: the function runs as it is written"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(scripts, name):
    text, expected = PROGRAMS[name]
    done = scripts[text]
    assert (done.status, done.output.strip()) == (0, expected), done.errors


@pytest.mark.parametrize("text", REFUSED)
def test_refused(scripts, text):
    done = scripts[text]
    assert done.status == 1
    assert REFUSED[text] in done.errors.splitlines()[-1]
