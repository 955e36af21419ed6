"""Faults of the environment, by the messages that reveal them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchbisect.core.verdict import MismatchKind
from torchbisect.probe.judge.classify import find_untestable
from torchbisect.probe.judge.environment_faults import environment_fault, missing_api, missing_module

# As torch, triton, numpy and the system write them; the comment says who.
FAULTS = [
    ("OSError", "[Errno 28] No space left on device: '/tmp/x'", "disk-full"),
    (
        "torch._inductor.exc.InvalidCxxCompiler",
        "No working C++ compiler found in torch._inductor.config.cpp.cxx",
        "no-compiler",
    ),
    ("FileNotFoundError", "[Errno 2] No such file or directory: 'g++'", "no-compiler"),
    ("RuntimeError", "Failed to find C compiler. Please specify via CC environment variable.", "no-compiler"),
    (
        "torch._inductor.exc.CppCompileError",
        "C++ compile error\nfatal error: Python.h: No such file or directory",
        "no-headers",
    ),
    (
        "torch._inductor.exc.CppCompileError",
        "C++ compile error\nfatal error: algorithm: No such file or directory",
        "no-headers",
    ),
    ("RuntimeError", "Cannot find a working triton installation.", "no-triton"),
    ("AssertionError", "Torch not compiled with CUDA enabled", "no-cuda"),
    ("RuntimeError", "Found no NVIDIA driver on your system.", "no-cuda"),
    ("RuntimeError", "Python 3.11+ not yet supported for torch.compile", "dynamo-not-supported"),
    ("RuntimeError", "Dynamo is not supported on Python 3.13+", "dynamo-not-supported"),
    ("RuntimeError", "Numpy is not available", "numpy-abi"),
    ("ImportError", "/x/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent", "import-failed"),
    ("OSError", "libcudart.so.12: cannot open shared object file: No such file or directory", "import-failed"),
    (
        "torch._dynamo.exc.InvalidBackend",
        "Invalid backend: 'aot_eager_decomp_partition', see `torch._dynamo.list_backends()`",
        "no-such-backend",
    ),
    (
        "torch._dynamo.exc.Unsupported",
        "torch.func.grad capture is disabled, it can be turned on by setting "
        "`torch._dynamo.config.capture_func_transforms=True`\n\nfrom user code:\n",
        "no-such-feature",
    ),
    (
        "RuntimeError",
        "Unexpected optimization option max_fusion, known options are ['debug', 'cpp']",
        "no-such-feature",
    ),
    ("RuntimeError", "Unrecognized mode=reduce-everything, should be one of: default", "no-such-feature"),
    ("TypeError", "compile() got an unexpected keyword argument 'recompile_limit'", "no-such-feature"),
    ("RuntimeError", "can't start new thread", "process-limit"),
    (
        "RuntimeError",
        "Unable to handle autograd's threading in combination with fork-based multiprocessing.",
        "forking",
    ),
    ("RuntimeError", "[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory", "out-of-memory"),
]


@pytest.mark.parametrize(("name", "message", "reason"), FAULTS)
def test_a_fault_is_named_and_never_a_mismatch(shown, name: str, message: str, reason: str) -> None:
    raised = shown.raised(name, message, "torch/x.py:f")
    wrapped = shown.raised("torch._dynamo.exc.BackendCompilerFailed", "backend failed", "torch/x.py:f", cause=raised)
    for failure in (raised, wrapped):
        trouble = find_untestable(shown.compiled(shown.ends(failure)))
        assert trouble is not None
        assert trouble.reason == reason
        assert "\n" not in trouble.detail


@pytest.mark.parametrize(("name", "message", "reason"), FAULTS[:4])
def test_a_fault_that_the_script_caught_is_found(shown, name: str, message: str, reason: str) -> None:
    caught = shown.differs(MismatchKind.RAISES, "call 0", "exception", "returned", f"{name}: {message}")
    assert environment_fault(shown.compiled(shown.finished, caught)).reason == reason
    below = shown.raised("torch._inductor.exc.InductorError", "no", cause=shown.raised(name, f"failed\n{message}"))
    caught = replace(caught, compiled="torch._inductor.exc.InductorError: no", compiled_raised=below)
    assert environment_fault(shown.compiled(shown.finished, caught)).reason == reason


@pytest.mark.parametrize(
    "message",
    [
        "C++ compile error\n/tmp/x.cpp:3:5: error: no matching function for call to 'transpose_mxn'",
        "shape '[7, 3]' is invalid for input of size 8",
        "Node redefined name aot0_primals_1!",
        "specifying inputs= with .backward() not yet implemented for compiled autograd",
        "call_function got an unexpected keyword argument 'recompile_limit'",
        "Unsupported context manager\n  Explanation: Dynamo does not know how to enter a `lock` context manager.",
    ],
)
def test_a_bug_is_no_fault(shown, message: str) -> None:
    observation = shown.compiled(shown.ends(shown.raised("RuntimeError", message, "torch/x.py:f")))
    assert environment_fault(observation) is None
    assert find_untestable(observation) is None


def test_a_missing_package_is_named_with_what_to_do(shown) -> None:
    failure = shown.ends(
        shown.raised("ModuleNotFoundError", "No module named 'transformers.models'", "repro.py:<module>")
    )
    observation = shown.both(failure, failure)
    assert missing_module(observation) == "transformers"
    trouble = find_untestable(observation)
    assert trouble.reason == "missing-module"
    assert "--with transformers" in trouble.detail


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AttributeError", "torch._dynamo.config.compiled_autograd does not exist"),
        ("AttributeError", "module 'torch' has no attribute 'compiler'"),
        ("ImportError", "cannot import name 'flex_attention' from 'torch.nn.attention' (/x/__init__.py)"),
        ("ModuleNotFoundError", "No module named 'torch.nn.attention'"),
    ],
)
def test_a_missing_api(shown, name: str, message: str) -> None:
    failure = shown.ends(shown.raised(name, message, "repro.py:<module>:3"))
    observation = shown.both(failure, failure)
    assert missing_api(observation) == message
    assert find_untestable(observation).reason == "missing-api"


def test_a_missing_dependency_of_torch(shown) -> None:
    failure = shown.ends(
        shown.raised("ModuleNotFoundError", "No module named 'pkg_resources'", "repro.py:f", "torch/utils/cpp.py:g")
    )
    assert find_untestable(shown.compiled(failure)).reason == "dependency-missing"
