"""Tests that every kernel of the examples and of the demo compiles to machine code for each declared target."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import cuda_tma
from benchmarks.kernels import example
from tests.examples._examples import ROOT, SCRIPTS, constants, kernels
from tests.include._header import cubin
from tests.support.compiled_kernels import compiled_kernel
from tests.support.machine_code import machine_code

HEADERS = Path(cuda_tma.include_path(), "cuda_tma")


EXAMPLES_WITH_CASES = [script.stem for script in SCRIPTS if "def cases(" in script.read_text()]


@pytest.mark.parametrize(("source", "target"), list(kernels()))
def test_kernel_compiles(source, target):
    code = machine_code(cubin(source, target))
    assert code and all(code.values())


def test_warps_are_converged_at_cluster_barriers():
    """The instruction barrier.cluster is .aligned, so the statement before it makes divergent threads converge."""
    sources = {script.stem: str(constants(script).get("SOURCE", "")) for script in SCRIPTS}
    sources |= {header.stem: header.read_text() for header in HEADERS.glob("*.cuh")}
    before = []
    for name, source in sources.items():
        meetings = re.findall(
            r"(\S+)\s+cluster_(?:sync|arrive\w*)\((?:CUDA_TMA_HERE_ALONE)?\);", re.sub("//.*", "", source)
        )
        before += [(name, statement) for statement in meetings]
    assert {name for name, _ in before} == {"roles", "gemm_sm100"}
    assert {statement for _, statement in before} <= {"__syncwarp();", "__syncthreads();"}, before


def test_every_script_with_a_kernel_is_tested():
    """Each example that includes the device header declares SOURCE and TARGETS as literals, so that the tests find
    them."""
    with_kernel = {script.stem for script in SCRIPTS if "#include <cuda_tma/" in script.read_text()}
    assert {"tiled_load", "replace_address", "fp8_tiles", "demo"} <= with_kernel
    for script in SCRIPTS:
        if script.stem in with_kernel:
            assert {"SOURCE", "TARGETS"} <= constants(script).keys(), script.name


@pytest.mark.parametrize(
    "script", [script for script in SCRIPTS if script.parent.name == "examples"], ids=lambda s: s.stem
)
def test_importing_an_example_runs_nothing(script):
    """The import of an example runs no kernel, because its code is under a main guard."""
    statements = ast.parse(script.read_text()).body
    assert not [node for node in statements if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    assert isinstance(statements[-1], ast.If)
    assert ast.unparse(statements[-1].test) == "__name__ == '__main__'"


@pytest.mark.parametrize("script", [s for s in SCRIPTS if "SOURCE" in constants(s)], ids=lambda script: script.stem)
def test_a_tile_is_declared_only_in_cpp(script):
    """Python reads the box, data type, swizzle and shared-memory size from the kernel. In the demo, only Python
    contains the tensor maps, and C++ receives their types."""
    tree = ast.parse(script.read_text())
    stated = {keyword.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for keyword in node.keywords}
    said_by_hand = {"box_dim", "swizzle", "l2_promotion", "pixels_per_column", "channels_per_pixel", "shmem_size"}
    assert stated & said_by_hand == set()
    assert (stated & {"data_type", "tile_dim"} == set()) == (script.stem != "demo")
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert names & {"cuKernelSetAttribute", "TensorMapOptions", "CUfunction_attribute"} == set()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("copy_2d", 120),
        ("transpose", 120),
        ("gemm", 170),
        ("conv_im2col", 170),
        ("grouped_gemm", 300),
        ("attention", 401),
    ],
)
def test_the_examples_to_learn_from_are_short(name, lines):
    """The examples for learners are short, because users read them from the first line to the last."""
    assert (ROOT / "examples" / f"{name}.py").read_text().count("\n") < lines


@pytest.mark.parametrize("name", ["tiled_load", "fp8_tiles", *EXAMPLES_WITH_CASES])
def test_a_kernel_without_an_effect_is_found(name, driver, monkeypatch):
    """Each argument of an example fits the kernel's parameter. The check of an example fails if the launch has no
    effect."""
    pytest.importorskip("torch")
    from tests.support.hosted_examples import hosted_example

    module = hosted_example(name, driver, monkeypatch)
    with pytest.raises(AssertionError):
        if name in EXAMPLES_WITH_CASES:
            for _, ours, *_ in module.cases(module.SMALL):
                ours()
        else:
            module.main()
    assert len(driver.launches) == 1


WITHOUT_TORCH = """
import runpy, sys
sys.modules["torch"] = None
sys.argv = sys.argv[1:]
sys.path.insert(0, "examples")
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def without_torch(*arguments):
    command = [sys.executable, "-c", WITHOUT_TORCH, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("name", ["gemm", "tiled_load"])
def test_an_example_without_torch_gives_a_hint(name):
    ended = without_torch(f"examples/{name}.py")
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.splitlines() == [
        "The examples take their tensors from PyTorch, which is not installed: pip install torch"
    ]
    described = without_torch(f"examples/{name}.py", "--help")
    assert described.returncode == 0 and ("--small" in described.stdout) == (name == "gemm")
    assert ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text())) in described.stdout


def test_cases_are_run_with_their_rivals_and_checked_after(monkeypatch, capsys):
    # The call of example() makes the module _example importable.
    example("gemm")
    _example = importlib.import_module("_example")
    done = []

    def cases(sizes):
        for size in sizes:
            yield f"size {size}", lambda: done.append("ours"), {"other": lambda: done.append("other")}, 0, 8
            done.append("checked")

    monkeypatch.setattr(_example, "_require_torch", lambda: None)
    monkeypatch.setattr(sys, "argv", ["x.py", "--small"])
    _example.start_cases(cases, (1, 2), (3,), "A text")
    assert done == ["ours", "other", "checked"] * 2
    assert capsys.readouterr().out == "ok: 2 cases, every element of them; the last: size 2\n"
    monkeypatch.setattr(sys, "argv", ["x.py"])
    _example.start_cases(cases, (1, 2), (3,), "A text")
    assert done == ["ours", "other", "checked"] * 5


@pytest.fixture
def gemm(monkeypatch, driver):
    """Return the GEMM example with a launch that multiplies the matrices on the host."""
    torch = pytest.importorskip("torch")
    module = example("gemm")

    class Device:
        def set_current(self):
            pass

        default_stream, properties = None, SimpleNamespace(multiprocessor_count=132)

    def prepare(kernel, config, a, b, c, down, across, deep):
        (m, k), (n, _) = a.shape, b.shape
        assert (down, across, deep) == (-(-m // 256), -(-n // 256), -(-k // 64))
        assert config == {"grid": 2 * down * across, "block": 384}
        return lambda stream: c.copy_(a.float() @ b.float().T)

    hosted = {"randn": lambda *args, device, **kwargs: torch.randn(*args, **kwargs)}
    monkeypatch.setattr(module, "torch", SimpleNamespace(**{**vars(torch), **hosted}))
    fakes = {"Device": Device, "prepare": prepare, "compile": partial(compiled_kernel, driver)}
    monkeypatch.setattr(module, "cuda_tma", SimpleNamespace(**{**vars(cuda_tma), **fakes}))
    monkeypatch.setattr(module, "LaunchConfig", dict)
    return module


@pytest.mark.parametrize("skipped", [None, "ours", "rival"])
def test_results_of_a_product_and_its_rival_are_checked(gemm, skipped):
    steps = gemm.cases([(70, 24, 40)])
    case, ours, rivals, flops, moved_bytes = next(steps)
    assert (case, flops, moved_bytes) == ("70 x 24 x 40 bf16", 2 * 70 * 24 * 40, 2 * (70 * 40 + 24 * 40 + 70 * 24))
    if skipped != "ours":
        ours()
    if skipped != "rival":
        rivals["torch.matmul"]()
    with pytest.raises(StopIteration if skipped is None else AssertionError):
        next(steps)


@pytest.fixture
def grouped_gemm(monkeypatch, driver):
    """Return the grouped GEMM example on host memory, with a launch that multiplies each expert's rows."""
    torch = pytest.importorskip("torch")

    def prepare(kernel, config, tokens, weights, counts, output, drawn, experts, rows, steps):
        def launch(stream):
            sizes, memory = counts.tolist(), output.as_strided((side + len(tokens), rows), (rows, 1))
            memory[: side if module.goes_too_far else 0] = 0
            parts = memory[side:].split(sizes), tokens.split(sizes), weights.view(experts, rows, -1)
            for of_expert, some, weight in zip(*parts, strict=True):
                of_expert[:] = (some.float() @ weight.float().T).bfloat16()

        assert (config["grid"], config["cluster"], steps) == (132, 2, -(-tokens.shape[1] // 64))
        side = output.shape[1]
        return launch

    def on_host(make):
        return lambda *args, device, **kwargs: make(*args, **kwargs)

    properties = SimpleNamespace(multiprocessor_count=133)
    device = SimpleNamespace(set_current=lambda: None, default_stream=None, properties=properties)
    module = example("grouped_gemm")
    hosted = {name: on_host(getattr(torch, name)) for name in ("randn", "tensor")}
    fakes = {"prepare": prepare, "compile": partial(compiled_kernel, driver)}
    monkeypatch.setattr(module, "torch", SimpleNamespace(**{**vars(torch), **hosted}))
    monkeypatch.setattr(module, "cuda_tma", SimpleNamespace(**{**vars(cuda_tma), **fakes, "Device": lambda: device}))
    monkeypatch.setattr(module, "LaunchConfig", dict)
    return module


@pytest.mark.parametrize("wrong", [None, "skipped", "routing", "before"])
def test_each_step_of_a_routing_is_its_own(grouped_gemm, wrong):
    """The grouped GEMM example checks the result of the last step with the routing of that step. The launch does not
    change the rows before the step's first row."""
    (edges,) = grouped_gemm.SMALL
    grouped_gemm.goes_too_far = wrong == "before"
    runs = grouped_gemm.cases([edges])
    case, ours, rivals, flops, moved_bytes = next(runs)
    assert case == "edges: 9 experts of 512 x 200, 0 to 700 of 1147 tokens, bf16" and rivals == {}
    assert (flops, moved_bytes) == (2 * 1147 * 512 * 200, 2 * (6 * 512 * 200 + 1147 * 712))
    for _ in range(0 if wrong == "skipped" else 2):
        ours()
    if wrong == "routing":
        ours.sizes = edges[1][0]
    with pytest.raises(AssertionError if wrong else StopIteration):
        next(runs)


def test_more_experts_than_the_kernel_supports_are_refused(grouped_gemm):
    grouped_gemm.goes_too_far = False
    with pytest.raises(AssertionError, match="257 experts: the kernel has room for 256"):
        next(grouped_gemm.cases([("many", ((1,) * 257,), 8, 8)]))


def test_routings_are_the_same_each_time(grouped_gemm):
    for _, steps, *_ in grouped_gemm.LARGE:
        assert len({sum(sizes) for sizes in steps}) == 1 and len(set(steps)) == len(steps) == 4
    uniform, skewed = (grouped_gemm.routed(64, 16384, is_skewed) for is_skewed in (False, True))
    assert uniform[0][:4] == (269, 296, 277, 250) and skewed[0][:4] == (534, 273, 20, 6)
    assert min(uniform[0]) > 200 > 20 > min(skewed[0])


def test_the_checked_case_has_experts_without_tokens(grouped_gemm):
    """In the example's checked case, the first expert, the last expert and an expert between them have no tokens."""
    first, *between, last = grouped_gemm.CHECKED
    assert first == last == 0 and 0 in between and any(between)
