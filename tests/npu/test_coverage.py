"""Every function of CANN that the installed torch_npu looks up is here, or a list says why not."""

from __future__ import annotations

import ctypes
import re

import torch
import torch_npu

from aclnn_torch.cli.coverage import MISSING, UNDECLARED, asked_for, coverage, torch_npu_library
from aclnn_torch.host import PREFIX

# Functions of torch_npu's own, whose names its errors contain.
ITS_OWN = {"aclnnNotFound", "aclnnNotFoundV2"}
NOT_IN_2_8 = set() if torch.__version__.startswith("2.8.") else {"aclnnSetPytorchRandom"}


def test_functions_with_two_stages() -> None:
    """Computed, refused with a reason, or listed."""
    names = asked_for()
    assert names is not None
    assert len(names) > 800
    silent = {entry.function for entry in coverage(names) if entry.state == MISSING and not entry.reason}
    assert silent == set()


def test_listed_functions_are_not_here() -> None:
    """torch_npu would call one that is here."""
    library = ctypes.CDLL(str(PREFIX / "lib64" / "libopapi.so"))
    assert {
        name for name in UNDECLARED if hasattr(library, name) or hasattr(library, f"{name}GetWorkspaceSize")
    } == set()


def test_functions_with_one_stage() -> None:
    """They are looked up in libopapi.so and the libraries that it links."""
    path = torch_npu_library()
    assert path is not None
    # A wheel whose names the tool patchelf moved has remains of them, which overlap: "aclnnSilentCheckaclnnResel...".
    found = re.findall(rb"(?<=\0)aclnn[A-Z](?:(?!aclnn)\w)+(?=\0)", path.read_bytes())
    texts = {text.decode() for text in found}
    plain = {text for text in texts if not re.search("Get(Max)?WorkspaceSize$", text)} - (asked_for() or set())
    library = ctypes.CDLL(str(PREFIX / "lib64" / "libopapi.so"))
    assert {"aclnnReselectStaticKernel"} | NOT_IN_2_8 <= plain
    assert {name for name in plain if not hasattr(library, name)} == ITS_OWN


def test_torch_npu_reselects_operators_compiled_in_advance() -> None:
    """It fails where it does not find the functions."""
    torch_npu.npu._aclnn_reselect_static_kernel()
    if NOT_IN_2_8:
        torch_npu._C._aclnn_reselect_static_kernel_with_path(str(PREFIX))
    assert torch.ones(3).npu().sum().item() == 3
