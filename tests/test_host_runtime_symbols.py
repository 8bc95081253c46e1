"""The prefix from torch_npu 2.13.0's view: libraries that it links against, and the functions that it needs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_torch
from aclnn_torch.host import LIBRARIES

LIB64 = Path(aclnn_torch.__file__).parent / "cann" / "lib64"

# Bound at load time: if one is missing, `import torch_npu` fails.
LINKED = """
aclAppLog aclCreateDataBuffer aclCreateTensorDesc aclDestroyDataBuffer aclDestroyTensorDesc aclFinalize
aclGetDeviceCapability aclGetRecentErrMsg aclGetTensorDescDimV2 aclGetTensorDescFormat aclGetTensorDescNumDims
aclGetTensorDescType aclInit aclSetTensorDescName aclSetTensorFormat aclSetTensorPlaceMent aclSetTensorShape
aclmdlFinalizeDump aclmdlInitDump aclmdlSetDump aclopCompileAndExecute aclopCreateAttr aclopDestroyAttr
aclopSetAttrBool aclopSetAttrDataType aclopSetAttrFloat aclopSetAttrInt aclopSetAttrListBool aclopSetAttrListFloat
aclopSetAttrListInt aclopSetAttrListListInt aclopSetAttrString aclrtBinaryGetFunction aclrtBinaryLoadFromData
aclrtCreateEventExWithFlag aclrtCreateStream aclrtCreateStreamWithConfig aclrtDestroyEvent aclrtDestroyStream
aclrtDeviceCanAccessPeer aclrtDeviceEnablePeerAccess aclrtDeviceGetBareTgid aclrtEventElapsedTime aclrtFree
aclrtFreeHost aclrtFreePhysical aclrtGetCurrentContext aclrtGetDevice aclrtGetDeviceCount aclrtGetFunctionAddr
aclrtGetMemInfo aclrtGetSocName aclrtMalloc aclrtMallocHost aclrtMallocPhysical aclrtMapMem
aclrtMemExportToShareableHandle aclrtMemImportFromShareableHandle aclrtMemSetPidToShareableHandle aclrtMemcpy
aclrtMemcpyAsync aclrtMemset aclrtProcessReport aclrtRecordEvent aclrtReleaseMemAddress aclrtReserveMemAddress
aclrtResetDevice aclrtResetEvent aclrtSetCurrentContext aclrtSetDevice aclrtStreamWaitEvent aclrtSynchronizeEvent
aclrtSynchronizeStream aclrtUnmapMem MsprofGetHashId MsprofRegisterCallback MsprofReportAdditionalInfo MsprofReportApi
MsprofReportCompactInfo MsprofSysCycleTime rtDevBinaryRegister rtFunctionRegister rtGetC2cCtrlAddr rtKernelLaunch
"""

# Looked up at run time, each in its library.
LOOKED_UP = {
    "libascendcl.so": """
aclGetCannAttribute aclGetRecentErrMsg aclrtGetSocName aclrtPeekAtLastError aclsysGetCANNVersion aclsysGetVersionStr
aclrtMallocAlign32 aclrtCreateEventWithFlag aclrtCreateEventExWithFlag aclrtCreateStreamWithConfig
aclrtDestroyStreamForce aclrtQueryEventStatus aclrtStreamQuery aclrtSynchronizeDeviceWithTimeout
aclrtSynchronizeStreamWithTimeout aclrtGetSysParamOpt aclrtSetSysParamOpt aclrtCtxSetSysParamOpt aclrtSetDeviceSatMode
aclrtSetOpExecuteTimeOut aclrtSetOpExecuteTimeOutV2 aclrtSetStreamFailureMode
""",
    "libhccl.so": """
HcclSetConfig
""",
    "libascend_hal.so": """
drvGetDevNum
""",
    "libacl_op_compiler.so": """
aclGetCompileopt aclGetCompileoptSize aclSetCompileopt aclopCompileAndExecuteV2
""",
    "libascend_dump.so": """
aclopStartDumpArgs aclopStopDumpArgs
""",
    "libascendsk.so": """
aclskOptimize aclskScopeBegin aclskScopeEnd
""",
    "libopapi.so": """
aclCreateTensor aclDestroyTensor aclCreateScalar aclDestroyScalar aclCreateIntArray aclDestroyIntArray
aclCreateBoolArray aclDestroyBoolArray aclCreateFloatArray aclDestroyFloatArray aclCreateTensorList
aclDestroyTensorList aclCreateScalarList aclDestroyScalarList aclGetViewShape aclGetRawTensorAddr aclnnElu
aclnnEluGetWorkspaceSize
""",
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_have_their_own_names(name: str) -> None:
    """Later look-ups by name match the soname of the loaded library."""
    library = LIB64 / f"lib{name}.so"
    assert not library.is_symlink()
    output = subprocess.run(
        ["readelf", "--wide", "--dynamic", library], capture_output=True, text=True, check=True
    ).stdout
    assert f"soname: [{library.name}]" in output
    if name != "ascendcl":  # the others need it, and find it in their folder
        assert "[$ORIGIN" in output


def test_functions_to_link_against() -> None:
    library = ctypes.CDLL(str(LIB64 / "libascendcl.so"))
    assert [name for name in LINKED.split() if not hasattr(library, name)] == []
    assert len(LINKED.split()) == 84


def test_functions_to_look_up() -> None:
    """In a separate process, because this one has loaded the embedded library."""
    names = {str(LIB64 / library): text.split() for library, text in LOOKED_UP.items()}
    code = f"""
import ctypes, torch
for path, names in {names!r}.items():
    library = ctypes.CDLL(path)
    print(*(name for name in names if not hasattr(library, name)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "\n" * len(names), result.stderr


EINVAL, ERANGE = 22, 34


@pytest.mark.parametrize(
    ("size", "source", "status", "left"),
    [
        (5, b"abcd", 0, b"abcd\0xxx"),
        (5, b"abcde", ERANGE, b"\0xxxxxxx"),
        (5, None, EINVAL, b"\0xxxxxxx"),
        (0, b"", EINVAL, b"xxxxxxxx"),
    ],
)
def test_a_bounded_copy(size: int, source: bytes | None, status: int, left: bytes) -> None:
    """C11, K.3.7.1.3: the string with its zero fits, or the buffer has the empty one."""
    buffer = (ctypes.c_char * 8)(*b"xxxxxxxx")
    assert ctypes.CDLL(str(LIB64 / "libc_sec.so")).strcpy_s(buffer, ctypes.c_size_t(size), source) == status
    assert buffer.raw == left


@pytest.mark.parametrize(
    ("size", "count", "number", "status", "left"),
    [
        (5, 4, 1234, 4, b"1234\0xxx"),
        (5, 4, 12345, -1, b"1234\0xxx"),
        (5, 2, 123, -1, b"12\0xxxxx"),
        (5, 9, 1234, 4, b"1234\0xxx"),
        (5, 9, 12345, -1, b"\0"),
        (0, 0, 1, -1, b"xxxxxxxx"),
    ],
)
def test_a_bounded_text(size: int, count: int, number: int, status: int, left: bytes) -> None:
    """A text that is longer than `count` is cut, one that does not fit is not kept; neither has a length."""
    buffer = (ctypes.c_char * 8)(*b"xxxxxxxx")
    write = ctypes.CDLL(str(LIB64 / "libc_sec.so")).snprintf_s
    assert write(buffer, ctypes.c_size_t(size), ctypes.c_size_t(count), b"%d", ctypes.c_int(number)) == status
    assert buffer.raw.startswith(left)
    assert buffer.raw.endswith(b"xxx")
