"""Refusals of devices, contexts and versions."""

from __future__ import annotations

import struct

from tests.runtime_refusals.refusal import INVALID, PAGE, RT_INVALID, RT_UNSUPPORTED, refused

NONE_2 = "device 2 does not exist; there are 2 (environment variable ACLNN_TORCH_DEVICES)"
ATTRIBUTES = "expected one of 101, 102, 201, 301 and 302; a simulated device has no others"
GONE_CONTEXT = "the context does not exist, or was destroyed"
DEVICES = [
    *refused(
        "ACL_ERROR_RT_INVALID_DEVICEID",
        NONE_2,
        ("aclrtSetDevice", 2),
        ("aclrtResetDevice", 2),
        ("aclrtResetDeviceForce", 2),
        ("aclrtCreateContext", "&none", 2),
        ("aclrtGetPrimaryCtxState", 2, None, "out"),
        ("aclrtGetDeviceUtilizationRate", 2, "out"),
        ("aclrtDeviceCanAccessPeer", "out", 0, 2),
        ("aclrtDeviceCanAccessPeer", "out", 2, 0),
        ("aclrtDeviceEnablePeerAccess", 2, 0),
        ("aclrtDeviceDisablePeerAccess", 2),
        ("aclrtDevicePeerAccessStatus", 0, 2, "out"),
        ("aclrtDevicePeerAccessStatus", 2, 0, "out"),
        ("aclrtGetDeviceInfo", 2, 101, "out"),
        ("aclGetDeviceCapability", 2, 0, "out"),
        ("aclrtSetDeviceResLimit", 2, 0, 1),
        ("aclrtGetDeviceResLimit", 2, 0, "out"),
        ("aclrtResetDeviceResLimit", 2),
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 0, 0, 2, 1, 0), 0),
    ),
    *refused(
        "ACL_ERROR_RT_INVALID_DEVICEID",
        NONE_2.replace("2 d", "-1 d"),
        ("aclrtSetDevice", -1),
        ("aclGetDeviceCapability", -1, 0, "out"),
    ),
    *(
        refusal
        for info in (-1, 3)
        for refusal in refused(
            INVALID,
            f"deviceInfo is {info}, expected 0 (ACL_DEVICE_INFO_AI_CORE_NUM) to 2 (ACL_DEVICE_INFO_L2_SIZE)",
            ("aclGetDeviceCapability", 0, info, "out"),
        )
    ),
    *refused(RT_UNSUPPORTED, f"attr is 103, {ATTRIBUTES}", ("aclrtGetDeviceInfo", 0, 103, "out")),
    *refused(
        INVALID,
        "flags is {out}, expected a null pointer; it is reserved",
        ("aclrtGetPrimaryCtxState", 0, "out", "out+8"),
    ),
    *refused(
        INVALID,
        "utilizationExtend is 0x7, expected a null pointer; it is reserved",
        ("aclrtGetDeviceUtilizationRate", 0, struct.pack("iiiiq", 0, 0, 0, 0, 7)),
    ),
    *refused(INVALID, "flags is 1, expected 0", ("aclrtDeviceEnablePeerAccess", 1, 1)),
    *refused(
        INVALID,
        "device 0 is the current device, expected another one as its peer",
        ("aclrtDeviceEnablePeerAccess", 0, 0),
    ),
    *refused(
        RT_INVALID,
        "mode is 2, expected 0 (ACL_RT_OVERFLOW_MODE_SATURATION) or 1 (ACL_RT_OVERFLOW_MODE_INFNAN)",
        ("aclrtSetDeviceSatMode", 2),
    ),
    *refused(
        RT_UNSUPPORTED,
        "mode is ACL_RT_OVERFLOW_MODE_SATURATION, expected ACL_RT_OVERFLOW_MODE_INFNAN, which alone Ascend950 has",
        ("aclrtSetDeviceSatMode", 0),
        before=[("aclHostSetProduct", b"Ascend950")],
        after=[("aclHostSetProduct", b"Ascend910B")],
    ),
    *refused(
        RT_UNSUPPORTED,
        "mode is ACL_RT_OVERFLOW_MODE_INFNAN, expected ACL_RT_OVERFLOW_MODE_SATURATION, which alone Ascend310P has",
        ("aclrtSetDeviceSatMode", 1),
        before=[("aclHostSetProduct", b"Ascend310P")],
        after=[("aclHostSetProduct", b"Ascend910B")],
    ),
    *refused(
        RT_UNSUPPORTED,
        "Ascend310P does not have this function; wait for an event instead",
        ("aclrtValueWrite", "memory", 1, 0, "stream"),
        ("aclrtValueWait", "memory", 1, 0, "stream"),
        before=[("aclHostSetProduct", b"Ascend310P")],
        after=[("aclHostSetProduct", b"Ascend910B")],
    ),
    *refused(
        INVALID,
        "Ascend1 does not name a product; the products are Ascend310P, Ascend910, Ascend910B, Ascend910_93, "
        "Ascend950 and host, and their SoC names are accepted, too",
        ("aclHostSetProduct", b"Ascend1"),
    ),
    *refused(
        INVALID,
        "name is 8, expected 0 (ACL_PKG_NAME_CANN) to 7 (ACL_PKG_NAME_DRIVER)",
        ("aclsysGetCANNVersion", 8, "out"),
    ),
    *refused(
        INVALID,
        "cannAttr is 3, expected 0 (ACL_CANN_ATTR_INF_NAN) to 2 (ACL_CANN_ATTR_JIT_COMPILE)",
        ("aclGetCannAttribute", 3, "out"),
    ),
    *refused(
        RT_INVALID,
        "opt is 4, expected 0 (ACL_OPT_DETERMINISTIC) to 3 (ACL_OPT_ENABLE_KERNEL_EARLY_START)",
        ("aclrtSetSysParamOpt", 4, 1),
        ("aclrtGetSysParamOpt", 4, "out"),
        ("aclrtCtxSetSysParamOpt", 4, 1),
        ("aclrtCtxGetSysParamOpt", 4, "out"),
    ),
    *refused(
        "ACL_ERROR_RT_SYSPARAMOPT_NOT_SET",
        "option 2 was never set in this context",
        ("aclrtCtxGetSysParamOpt", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        "the context was made by aclrtSetDevice, expected one of aclrtCreateContext; end it with aclrtResetDevice",
        ("aclrtDestroyContext", "context"),
    ),
    *refused(
        "ACL_ERROR_RT_CONTEXT_NULL",
        GONE_CONTEXT,
        ("aclrtDestroyContext", "gone_context"),
        ("aclrtSetCurrentContext", "gone_context"),
    ),
    *refused(
        RT_INVALID,
        "type is 2, expected 0 (cube) or 1 (vector)",
        ("aclrtSetDeviceResLimit", 0, 2, 1),
        ("aclrtGetDeviceResLimit", 0, 2, "out"),
        ("aclrtSetStreamResLimit", "stream", 2, 1),
        ("aclrtGetStreamResLimit", "stream", 2, "out"),
        ("aclrtGetResInCurrentThread", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        "value is 25, expected 1 to 24, the device's cores",
        ("aclrtSetDeviceResLimit", 0, 0, 25),
        ("aclrtSetStreamResLimit", "stream", 0, 25),
    ),
    *refused(
        RT_INVALID,
        "value is 0, expected 1 to 48, the device's cores",
        ("aclrtSetDeviceResLimit", 0, 1, 0),
        ("aclrtSetStreamResLimit", None, 1, 0),
    ),
]
