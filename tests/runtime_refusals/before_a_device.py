"""Refusals before the thread has a device."""

from __future__ import annotations

from tests.runtime_refusals.refusal import refused

NO_DEVICE = "this thread has no device; call aclrtSetDevice first"
WITHOUT_DEVICE = [
    *refused(
        "ACL_ERROR_RT_CONTEXT_NULL",
        NO_DEVICE,
        ("aclrtCreateStream", "&none"),
        ("aclrtCreateStreamWithConfig", "&none", 0, 0),
        ("aclrtMalloc", "&none", 8, 0),
        ("aclrtMallocAlign32", "&none", 8, 0),
        ("aclrtGetMemInfo", 0, "out", "out+8"),
        ("aclrtSynchronizeDevice",),
        ("aclrtSynchronizeDeviceWithTimeout", 0),
        ("aclrtCtxSetSysParamOpt", 0, 1),
        ("aclrtCtxGetSysParamOpt", 0, "out"),
        ("aclrtDeviceEnablePeerAccess", 1, 0),
        ("aclrtDeviceDisablePeerAccess", 1),
        ("aclrtSetStreamResLimit", None, 0, 1),
        ("aclrtGetStreamResLimit", None, 0, "out"),
        ("aclrtResetStreamResLimit", None),
        ("aclrtUseStreamResInCurrentThread", None),
        ("aclrtUnuseStreamResInCurrentThread", None),
        ("aclrtGetResInCurrentThread", 0, "out"),
    ),
    *refused("ACL_ERROR_RT_CONTEXT_NULL", "device 1 is not set", ("aclrtResetDevice", 1), ("aclrtResetDeviceForce", 1)),
    *refused("ACL_ERROR_REPEAT_FINALIZE", "AscendCL is not initialised; call aclInit first", ("aclFinalize",)),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "cannot read the configuration missing.json: No such file or directory",
        ("aclInit", b"missing.json"),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration . is a folder, expected a file of JSON; pass its path, or null",
        ("aclInit", b"."),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration /dev/null is not a regular file, expected a file of JSON; pass its path, or null",
        ("aclInit", b"/dev/null"),
    ),
    *refused(
        "ACL_ERROR_INVALID_FILE",
        "the configuration large.json has 10485761 bytes, expected at most 10485760",
        ("aclInit", b"large.json"),
    ),
    *refused(
        "ACL_ERROR_PARSE_FILE",
        "the configuration wrong.json is not JSON of at most 10 nested objects and arrays: see line 2",
        ("aclInit", b"wrong.json"),
    ),
    *refused(
        "ACL_ERROR_REPEAT_INITIALIZE",
        "AscendCL is already initialised; call aclFinalize first",
        ("aclInit", None),
        before=[("aclInit", None)],
        after=[("aclFinalize",)],
    ),
]
