"""The prefix's plugin for vLLM, without vLLM, torch_npu or an NPU; tests/npu/test_vendor_operators.py has the values.

The definitions are those of vllm-ascend 0.23.0 (csrc/torch_binding.cpp).
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PathDistribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from aclnn_torch import host

PACKAGES = Path(host.PREFIX) / "python" / "site-packages"
LIST = Path(__file__).with_name("vllm_operators.tsv")


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The plugin, in a process that has no other finder of its kind."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield importlib.import_module("aclnn_vllm")
    for name in ("vllm_ascend", "vllm_ascend.vllm_ascend_C"):
        sys.modules.pop(name, None)


def package(folder: Path, *modules: str) -> None:
    """An empty vllm_ascend with these modules."""
    (folder / "vllm_ascend").mkdir()
    for name in ("__init__", *modules):
        (folder / "vllm_ascend" / f"{name}.py").write_text("made_by = 'vllm-ascend'\n")


def test_vllm_finds_it_by_entry_points() -> None:
    """vLLM loads general plugins where it starts an engine, and plugins of platforms where it looks for one."""
    points = PathDistribution(PACKAGES / "aclnn_vllm-0.dist-info").entry_points
    assert {(point.group, point.name, point.value) for point in points} == {
        ("vllm.general_plugins", "aclnn", "aclnn_vllm:register"),
        ("vllm.platform_plugins", "aclnn", "aclnn_vllm:register"),
        ("pytest11", "aclnn_vllm", "aclnn_vllm.in_tests"),
    }


def test_pytest_loads_it(tmp_path: Path) -> None:
    """Tests of operators import the module without vLLM's plugins."""
    counts = "[type(finder).__name__ for finder in sys.meta_path].count('Binding')"
    (tmp_path / "test_it.py").write_text(f"import sys\ndef test_it():\n    assert {counts} == 1\n")
    environment = os.environ | {"PYTHONPATH": str(PACKAGES), "ASCEND_HOME_PATH": str(host.PREFIX)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(tmp_path)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_it_does_nothing_beside_a_real_cann(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    for home in ("/usr/local/Ascend/cann", None):
        if home is None:
            monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
        else:
            monkeypatch.setenv("ASCEND_HOME_PATH", home)
        assert plugin.register() is None
        assert sys.meta_path == before


@pytest.fixture
def active(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The plugin where the host CANN is in use. As a plugin of a platform it has none: it returns None."""
    monkeypatch.setenv("ASCEND_HOME_PATH", str(host.PREFIX))
    assert plugin.register() is None
    assert plugin.register() is None
    assert [type(finder).__name__ for finder in sys.meta_path].count("Binding") == 1
    return plugin


def test_it_answers_the_import_of_the_binding(
    active: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("vllm_ascend.vllm_ascend_C")
    assert not hasattr(module, "made_by")
    assert hasattr(torch.ops._C_ascend, "npu_add_rms_norm_bias")
    with pytest.raises(ModuleNotFoundError, match="vllm_ascend_D"):
        importlib.import_module("vllm_ascend.vllm_ascend_D")


def test_a_binding_that_is_there_is_preferred(
    active: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package(tmp_path, "vllm_ascend_C")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("vllm_ascend.vllm_ascend_C").made_by == "vllm-ascend"


def test_the_library_of_the_allocator_is_loaded(tmp_path: Path) -> None:
    """vllm-ascend looks for a file of the module's name among those of the process, and asserts that it found it."""
    package(tmp_path)
    code = """
import aclnn_vllm
aclnn_vllm.register()
from vllm_ascend.vllm_ascend_C import init_module, python_create_and_map, python_unmap_and_release
print([line.split("/")[-1] for line in open("/proc/self/maps") if "vllm_ascend_C" in line][0].strip())
"""
    environment = {"PYTHONPATH": f"{PACKAGES}{os.pathsep}{tmp_path}", "ASCEND_HOME_PATH": str(host.PREFIX)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert result.stdout == "vllm_ascend_C.so\n", result.stderr


def test_registering_needs_neither_torch_nor_vllm() -> None:
    """vLLM loads the plugin in every process."""
    code = "import aclnn_vllm, sys; aclnn_vllm.register(); sys.exit(any(n in sys.modules for n in ('torch', 'vllm')))"
    environment = {"PYTHONPATH": str(PACKAGES), "ASCEND_HOME_PATH": str(host.PREFIX)}
    subprocess.run([sys.executable, "-S", "-c", code], env=environment, check=True)


# ---- the operators


@pytest.fixture
def definitions(plugin: ModuleType) -> Any:
    importlib.import_module("aclnn_vllm.operators")
    return importlib.import_module("aclnn_vllm.definitions")


def listed() -> dict[str, tuple[str, str]]:
    """Verdict and reason of each definition."""
    rows = [line.split("\t") for line in LIST.read_text().splitlines()[1:]]
    return {name: (verdict, reason) for name, verdict, reason in rows}


def test_the_list_has_all_definitions(definitions: Any) -> None:
    verdicts = listed()
    assert list(verdicts) == sorted(verdicts)
    assert len(verdicts) == 67
    assert sorted(definitions.COMPUTED) == [name for name, (verdict, _) in verdicts.items() if verdict == "computed"]
    assert {name: why for name, (verdict, why) in verdicts.items() if verdict == "refused"} == definitions.REFUSED


@pytest.mark.parametrize("name", [name for name, (verdict, _) in listed().items() if verdict == "refused"])
def test_others_are_refused_by_name(definitions: Any, name: str) -> None:
    """On any device, also where a compiler asks for the shapes of results (meta)."""
    operator = getattr(torch.ops._C_ascend, name).default
    values = {"Tensor": torch.empty(2, 2, device="meta"), "List[Tensor]": [torch.empty(2, device="meta")]}
    values |= {"int": 1, "float": 1.0, "str": "", "bool": True}
    given = [argument for argument in operator._schema.arguments if argument.default_value is None]
    arguments = {each.name: values.get(str(each.type)) for each in given}
    with pytest.raises(NotImplementedError) as caught:
        operator(**arguments)
    assert str(caught.value) == f"torch.ops._C_ascend.{name} is not computed on simulated NPUs: {listed()[name][1]}"


def test_computed_ones_have_no_kernel_for_the_cpu(definitions: Any) -> None:
    x = torch.ones(2, 4)
    with pytest.raises(NotImplementedError, match=r"Could not run '_C_ascend::npu_add_rms_norm_bias' with arguments"):
        torch.ops._C_ascend.npu_add_rms_norm_bias(x, x, x[0])


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


X = meta(6, 8)
INDEX = meta(6, dtype=torch.int64)
BF16, FLOAT, INT8, INT32, INT64 = torch.bfloat16, torch.float32, torch.int8, torch.int32, torch.int64
RESULTS: dict[str, tuple[Callable[[Any], Any], list[tuple[list[int], torch.dtype]]]] = {
    "experts": (
        lambda ops: ops.moe_gating_top_k(X, 2, 1, 1, 0, 1, 0, False, 1.0, 1e-20),
        [([6, 2], BF16), ([6, 2], INT32), ([6, 8], FLOAT)],
    ),
    "initial routing": (
        lambda ops: ops.npu_moe_init_routing_custom(X, meta(6, 2, dtype=INT32), expert_num=4),
        [([12, 8], INT8), ([12], INT32), ([4], INT64), ([12], FLOAT)],
    ),
    "initial routing with room for each expert": (
        lambda ops: ops.npu_moe_init_routing_custom(
            *(X, meta(6, 2, dtype=INT32)), expert_num=4, expert_capacity=3, drop_pad_mode=1, quant_mode=-1,
            expert_tokens_num_type=2,
        ),
        [([4, 3, 8], BF16), ([12], INT32), ([4, 2], INT64), ([12], FLOAT)],
    ),
    "dequantised SwiGLU": (
        lambda ops: ops.npu_dequant_swiglu_quant(meta(6, 8, dtype=INT32)),
        [([6, 4], INT8), ([6], FLOAT)],
    ),
    "indexer": (
        lambda ops: ops.npu_lightning_indexer(meta(2, 3, 4, 128), meta(2, 5, 1, 128), meta(2, 3, 4)),
        [([2, 3, 1, 2048], INT32), ([0], BF16)],
    ),
    "quantised norm": (
        lambda ops: ops.npu_rms_norm_dynamic_quant(X, meta(8)),
        [([6, 8], INT8), ([6], FLOAT)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_shapes_for_compilers(definitions: Any, name: str) -> None:
    """As the binding makes its results. Those of operators that torch computes have the shapes of torch's."""
    call, expected = RESULTS[name]
    got = call(torch.ops._C_ascend)
    results = got if isinstance(got, tuple) else (got,)
    assert [(list(each.shape), each.dtype) for each in results] == expected
    assert all(each.is_meta for each in results)
