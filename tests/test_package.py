"""The package as a whole: products, errors, counters, and effects of its import."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import aclnn_torch
from aclnn_torch import _C, functional, host, nn
from aclnn_torch.cann_releases import CANN_RELEASES
from aclnn_torch.ops import OPERATORS
from aclnn_torch.products import PRODUCTS
from tests import LONGEST

from . import public_api, wheel

ROOT = Path(__file__).resolve().parents[1]


def run_python(code: str, **environment: str) -> str:
    """The output of a new interpreter."""
    result = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_products_can_be_selected() -> None:
    for name in PRODUCTS:
        aclnn_torch.set_product(name)
        assert aclnn_torch.get_product() == name
    aclnn_torch.set_product("Ascend910B4")  # a SoC of the product
    assert aclnn_torch.get_product() == "Ascend910B"
    with aclnn_torch.product("host"):
        assert aclnn_torch.get_product() == "host"
    assert aclnn_torch.get_product() == "Ascend910B"


def test_an_unknown_product_is_refused() -> None:
    with pytest.raises(aclnn_torch.AclnnError, match="Ascend999") as caught:
        aclnn_torch.set_product("Ascend999")
    assert caught.value.status == 100000
    assert aclnn_torch.get_product() == "Ascend910B"


def test_the_product_of_the_environment() -> None:
    code = "import aclnn_torch; print(aclnn_torch.get_product())"
    assert run_python(code, ACLNN_TORCH_PRODUCT="Ascend950") == "Ascend950\n"


def test_a_misspelt_product_in_the_environment_is_told() -> None:
    code = "import warnings; warnings.showwarning = lambda message, *_: print(message)\nimport aclnn_torch"
    assert "hots" in run_python(code, ACLNN_TORCH_PRODUCT="hots")


def test_releases_of_cann_can_be_selected() -> None:
    for name in CANN_RELEASES:
        aclnn_torch.set_cann_release(name)
        assert aclnn_torch.get_cann_release() == name
    with aclnn_torch.cann_release("8.5"):
        assert aclnn_torch.get_cann_release() == "8.5"
    assert aclnn_torch.get_cann_release() == "later"


def test_an_unknown_release_of_cann_is_refused() -> None:
    with pytest.raises(aclnn_torch.AclnnError, match=r"9\.2 does not name a release of CANN") as caught:
        aclnn_torch.set_cann_release("9.2")
    assert caught.value.status == 100000
    assert aclnn_torch.get_cann_release() == "later"


def test_the_release_of_cann_of_the_environment() -> None:
    code = "import aclnn_torch; print(aclnn_torch.get_cann_release())"
    assert run_python(code, ACLNN_TORCH_CANN="9.0") == "9.0\n"
    assert run_python(code, ACLNN_TORCH_CANN="") == "later\n"


@pytest.mark.parametrize(
    ("variable", "module"),
    [
        ("PRODUCT", "aclnn_torch"),
        pytest.param("CANN", "aclnn_torch", marks=pytest.mark.test_all),
        pytest.param("MEMORY_POOL", "aclnn_torch.nn", marks=pytest.mark.test_all),
        ("TRACE", "aclnn_torch.memory"),
    ],
)
def test_warnings_of_the_import_show_its_line(variable: str, module: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import torch\n\nimport {module}\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT), f"ACLNN_TORCH_{variable}": "no/such"}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    first, line = ran.stderr.splitlines()
    assert first.startswith(f"{script}:3: UserWarning: ACLNN_TORCH_{variable}=no/such")
    assert line.strip() == f"import {module}"


def test_importing_prints_nothing_and_does_not_touch_torch_npu() -> None:
    code = "import aclnn_torch, sys; assert 'torch_npu' not in sys.modules"
    assert run_python(code) == ""


def test_objects_are_counted() -> None:
    assert _C.live_objects("nonsense") == -1
    code = """
import torch, aclnn_torch
from aclnn_torch import _C, host
y = aclnn_torch.functional.elu(torch.randn(4, requires_grad=True))
y.sum().backward()
print(_C.live_objects(), _C.live_objects("tensor"), _C.live_objects("executor"))
"""
    assert run_python(code) == "0 0 0\n"


def test_every_version_of_the_kernels_agrees() -> None:
    """In separate processes, since the version is selected once; a CPU without AVX2 has fewer versions."""
    code = """
import torch, aclnn_torch
torch.manual_seed(0)
results = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x, g = (torch.randn(1003).mul(4).to(dtype) for _ in range(2))
    results += [torch.ops.aclnn.elu(x, 1.5, 0.5, 2.0), torch.ops.aclnn.elu(x, 1.5, 0.5, -2.0), torch.ops.aclnn.selu(x)]
    results += [torch.ops.aclnn.elu_backward(g, 1.5, 0.5, 2.0, r, x) for r in (False, True)]
print([result.double().tolist() for result in results])
"""
    expected = eval(run_python(code), {"inf": float("inf")})
    tolerances = [4 * 2**-23] * 5 + [2**-10] * 5 + [2**-7] * 5
    for capability in ("reference", "avx2"):
        got = eval(run_python(code, ACLNN_TORCH_CPU_CAPABILITY=capability), {"inf": float("inf")})
        for a, b, rtol in zip(got, expected, tolerances, strict=True):
            torch.testing.assert_close(
                torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64), rtol=rtol, atol=2**-23
            )


@pytest.mark.test_all
@pytest.mark.parametrize("capability", ["reference", "avx2"])
def test_every_version_of_the_kernels_has_the_values(capability: str) -> None:
    """The operators' tables, compared with the CPU's best version; a CPU without AVX2 computes with the reference.

    Large tensors, too: these versions look up the results of more functions.
    """
    chosen = "test_values or test_every_size or test_channels_last"
    if capability == "avx2":  # the reference reads views by the same source
        chosen += " or test_views"
    pytests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not test_all and not deep"]
    lookups = "tests/test_determinism.py::test_large_tensors_of_16_bits_have_the_bits_of_small_ones"
    command = [*pytests, "tests/conformance", lookups, "-k", f"{chosen} or test_large_tensors_of_16_bits"]
    environment = os.environ | {"ACLNN_TORCH_CPU_CAPABILITY": capability}
    result = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert result.returncode == 0, result.stdout
    assert int(re.findall(r"(\d+) passed", result.stdout)[-1]) > 1000


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no git repository to compare with")
def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    """tests/wheel.py tests the wheel built from it."""
    wheel.check_sdist(wheel.make_sdist(tmp_path))


@pytest.mark.parametrize("face, kind", [(functional, "functions"), (nn, "modules")], ids=["functional", "nn"])
def test_faces_have_what_the_operators_state(face: ModuleType, kind: str) -> None:
    """Exactly the declared names; each can be found by its name, with its texts."""
    stated = [thing for operator in OPERATORS.values() for thing in getattr(operator, kind)]
    assert {thing.__name__: thing for thing in stated} == {name: getattr(face, name) for name in face.__all__}
    assert face.__all__ == sorted(face.__all__, key=lambda name: (not name.isupper(), name))
    for thing in stated:
        assert thing.__module__ == face.__name__
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert inspect.getdoc(thing)
        torchs = getattr(torch.nn if kind == "modules" else torch.nn.functional, thing.__name__, None)
        if torchs is None:
            assert thing.__name__ in ("linear_cross_entropy", "LinearCrossEntropyLoss")  # torch has them since 2.13
        elif kind == "modules":
            assert issubclass(thing, torchs)
            assert inspect.signature(thing) == inspect.signature(torchs)
        elif not inspect.isbuiltin(torchs):
            shared = [p.name for p in inspect.signature(torchs).parameters.values() if not p.name.startswith("_")]
            assert [*inspect.signature(thing).parameters][: len(shared)] == shared


def test_the_public_interface_is_used_as_it_is_typed() -> None:
    """tests/public_api.py uses all of it except some functions and classes, whose types tests/wheel.py checks;
    tests/wheel.py runs mypy --strict on both."""
    exec(compile(wheel.typed_names(), "names", "exec"), {})
    text = Path(public_api.__file__).read_text()
    names = [*aclnn_torch.__all__, "enable", "environment"]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []
    public_api.main()


def test_the_version_is_the_same_everywhere() -> None:
    """It is defined in the package only; the build reads it."""
    pkgconfig = host.PREFIX / "lib64" / "pkgconfig" / "aclnn_torch.pc"
    assert f"Version: {aclnn_torch.__version__}\n" in pkgconfig.read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## [{aclnn_torch.__version__}]" in changes
