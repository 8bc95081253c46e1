"""Refusals of memory. A block has 32 bytes more than a multiple of 32, so those of 64 have 96."""

from __future__ import annotations

import struct

from tests.runtime_refusals.refusal import INVALID, PAGE, RT_INVALID, RT_UNSUPPORTED, Call, refused

FREE = 2**30 - 96
LARGEST = (2**64 - 1) // 4
PHYSICAL = struct.pack("iiiIiQ", 0, 0, 0, 0, 1, 0)  # pinned memory of device 0
HAVE_PHYSICAL: list[Call] = [("aclrtMallocPhysical", "&physical", PAGE, PHYSICAL, 0)]
FREE_PHYSICAL: list[Call] = [("aclrtFreePhysical", "physical")]
MAPPED: list[Call] = [*HAVE_PHYSICAL, ("aclrtMapMem", "reserved", PAGE, 0, "physical", 0)]
UNMAPPED: list[Call] = [("aclrtUnmapMem", "reserved"), *FREE_PHYSICAL]
NO_PHYSICAL = "{memory} is not a handle of aclrtMallocPhysical, or was freed"
REGISTERED: list[Call] = [("aclrtHostRegisterV2", "host", PAGE, 2)]
UNREGISTERED: list[Call] = [("aclrtHostUnregister", "host")]
POLICIES = "expected one of ACL_MEM_MALLOC_ (0 to 7), and bits of 0x101100 (ACL_MEM_TYPE_ and ACL_MEM_ACCESS_) or none"
BOTH_FLAGS = "expected ACL_HOST_REG_MAPPED (0x2), ACL_HOST_REG_PINNED (0x10000000), or both"


def exhausted(size: int) -> str:
    return (
        f"device 0 is out of memory: {size} bytes requested, {FREE} of {2**30} free (environment variable "
        "ACLNN_TORCH_DEVICE_MEMORY)"
    )


MEMORY = [
    *refused(
        INVALID,
        "size is 0, expected 1 or more bytes",
        ("aclrtMalloc", "&none", 0, 0),
        ("aclrtMallocAlign32", "&none", 0, 0),
        ("aclrtMallocHost", "&none", 0),
    ),
    *refused(
        INVALID,
        f"policy is 0x8, {POLICIES}",
        ("aclrtMalloc", "&none", 8, 8),
        ("aclrtMallocAlign32", "&none", 8, 8),
    ),
    *refused(INVALID, f"policy is 0x200, {POLICIES}", ("aclrtMalloc", "&none", 8, 0x200)),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION",
        exhausted(2**30),
        ("aclrtMalloc", "&none", 2**30, 0),
        ("aclrtMallocAlign32", "&none", 2**30, 0),
        ("aclrtMallocPhysical", "&none", 2**30, PHYSICAL, 0),
    ),
    *refused("ACL_ERROR_RT_MEMORY_ALLOCATION", exhausted(2**64 - 1), ("aclrtMalloc", "&none", 2**64 - 1, 0)),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION", f"the host cannot allocate {2**62} bytes", ("aclrtMallocHost", "&none", 2**62)
    ),
    *refused(
        RT_INVALID, "{pinned} is not the beginning of a block of aclrtMalloc, or was freed", ("aclrtFree", "pinned")
    ),
    *refused(
        RT_INVALID, "{memory+8} is not the beginning of a block of aclrtMalloc, or was freed", ("aclrtFree", "memory+8")
    ),
    *refused(
        RT_INVALID,
        "{memory} is not the beginning of a block of aclrtMallocHost, or was freed",
        ("aclrtFreeHost", "memory"),
    ),
    *refused(
        INVALID,
        "attr is 18, expected 0 (ACL_DDR_MEM) to 17 (ACL_MEM_P2P_HUGE1G)",
        ("aclrtGetMemInfo", 18, "out", "out+8"),
    ),
    # copies
    *(
        refusal
        for kind in (-1, 6)
        for refusal in refused(
            INVALID,
            f"kind is {kind}, expected 0 to 5 of aclrtMemcpyKind",
            ("aclrtMemcpy", "memory", 8, "memory", 8, kind),
        )
    ),
    *(
        refusal
        for kind in (-1, 8)
        for refusal in refused(
            INVALID,
            f"kind is {kind}, expected 0 to 7 of aclrtMemcpyKind",
            ("aclrtMemcpyAsync", "memory", 8, "memory", 8, kind, "stream"),
        )
    ),
    *refused(
        RT_INVALID,
        "count 9 is more than destMax 8",
        ("aclrtMemcpy", "memory", 8, "host", 9, 1),
        ("aclrtMemcpyAsync", "memory", 8, "host", 9, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {pinned}, which is not device memory of aclrtMalloc",
        ("aclrtMemcpy", "pinned", 8, "host", 8, 1),
        ("aclrtMemcpyAsync", "pinned", 8, "host", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {host}, which is not device memory of aclrtMalloc",
        ("aclrtMemcpy", "pinned", 8, "host", 8, 2),
        ("aclrtMemcpyAsync", "pinned", 8, "host", 8, 2, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {memory1}, which is memory of device 1, expected host memory",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {memory}, which is memory of device 0, expected host memory",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 2, "stream"),
    ),
    *refused(
        RT_INVALID,
        "dst is {memory+8} and the call accesses 90 bytes, which reaches outside its block of 96 bytes at {memory}",
        ("aclrtMemcpy", "memory+8", 90, "host", 90, 1),
        ("aclrtMemcpyAsync", "memory+8", 90, "host", 90, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "src is {pinned+8} and the call accesses 60 bytes, which reaches outside its block of 64 bytes at {pinned}",
        ("aclrtMemcpy", "memory", 60, "pinned+8", 60, 1),
        ("aclrtMemcpyAsync", "memory", 60, "pinned+8", 60, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "the kind is a copy within one device, but the memory is of device 1 and device 0",
        ("aclrtMemcpyAsync", "memory", 8, "memory1", 8, 6, "stream"),
    ),
    *refused(
        RT_INVALID,
        "count 9 is more than maxCount 8",
        ("aclrtMemset", "memory", 8, 0, 9),
        ("aclrtMemsetAsync", "memory", 8, 0, 9, "stream"),
    ),
    *refused(
        RT_INVALID,
        "devPtr is {host}, which is not memory of aclrtMalloc or aclrtMallocHost",
        ("aclrtMemset", "host", 8, 0, 8),
        ("aclrtMemsetAsync", "host", 8, 0, 8, "stream"),
    ),
    *refused(
        RT_INVALID,
        "devPtr is {memory} and the call accesses 97 bytes, which reaches outside its block of 96 bytes at {memory}",
        ("aclrtMemset", "memory", 97, 0, 97),
        ("aclrtMemsetAsync", "memory", 97, 0, 97, "stream"),
    ),
    *refused(
        RT_INVALID,
        "devAddr is {memory+4}, expected a multiple of 8",
        ("aclrtValueWrite", "memory+4", 1, 0, "stream"),
        ("aclrtValueWait", "memory+4", 1, 0, "stream"),
    ),
    *refused(
        RT_INVALID,
        "the 8 bytes at devAddr, {pinned}, are not device memory of one block; pass memory of aclrtMalloc",
        ("aclrtValueWrite", "pinned", 1, 0, "stream"),
        ("aclrtValueWait", "pinned", 1, 0, "stream"),
    ),
    *refused(RT_INVALID, "flag is 1, expected 0", ("aclrtValueWrite", "memory", 1, 1, "stream")),
    *refused(
        RT_INVALID,
        "flag is 4, expected 0 to 3, one of ACL_STREAM_WAIT_VALUE_*",
        ("aclrtValueWait", "memory", 1, 4, "stream"),
    ),
    *refused(
        RT_UNSUPPORTED,
        "cmoType is 1, expected 0 (ACL_RT_CMO_TYPE_PREFETCH), the only operation that CANN supports",
        ("aclrtCmoAsync", "memory", 8, 1, "stream"),
    ),
    *refused(
        RT_INVALID,
        "the 97 bytes at src are not device memory of one block; pass memory of aclrtMalloc",
        ("aclrtCmoAsync", "memory", 97, 0, "stream"),
        ("aclrtCmoAsync", "host", 97, 0, "stream"),
    ),
    # registered host memory
    *refused(
        RT_INVALID, "type is 1, expected ACL_HOST_REGISTER_MAPPED (0)", ("aclrtHostRegister", "host", PAGE, 1, "&none")
    ),
    *refused(
        RT_INVALID,
        f"ptr is {{host+8}}, expected the beginning of a page of {PAGE} bytes",
        ("aclrtHostRegister", "host+8", 8, 0, "&none"),
        ("aclrtHostRegisterV2", "host+8", 8, 2),
    ),
    *refused(
        RT_INVALID,
        "size is 0, expected 1 or more, and memory there",
        ("aclrtHostRegister", "host", 0, 0, "&none"),
        ("aclrtHostRegisterV2", "host", 0, 0x10000000),
    ),
    *refused(
        RT_INVALID,
        f"size is {2**64 - 1}, expected 1 or more, and memory there",
        ("aclrtHostRegisterV2", "host", 2**64 - 1, 2),
    ),
    *refused(
        "ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        "a part of the 16 bytes at {host} is registered; call aclrtHostUnregister first",
        ("aclrtHostRegister", "host", 16, 0, "&none"),
        ("aclrtHostRegisterV2", "host", 16, 2),
        before=REGISTERED,
        after=UNREGISTERED,
    ),
    *refused(RT_INVALID, f"flag is 0, {BOTH_FLAGS}", ("aclrtHostRegisterV2", "host", PAGE, 0)),
    *refused(RT_INVALID, f"flag is 0x3, {BOTH_FLAGS}", ("aclrtHostRegisterV2", "host", PAGE, 3)),
    *refused(RT_INVALID, "flag is 1, expected 0", ("aclrtHostGetDevicePointer", "host", "&none", 1)),
    *refused(
        "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED",
        "{host} is not registered; call aclrtHostRegisterV2 first",
        ("aclrtHostGetDevicePointer", "host", "&none", 0),
    ),
    *refused(
        "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED",
        "{host+8} is not the beginning of registered memory",
        ("aclrtHostUnregister", "host+8"),
        before=REGISTERED,
        after=UNREGISTERED,
    ),
    # virtual memory
    *refused(RT_INVALID, f"size is 0, expected 1 to {LARGEST}", ("aclrtReserveMemAddress", "&none", 0, 0, None, 0)),
    *refused(
        RT_INVALID,
        f"size is {LARGEST + 1}, expected 1 to {LARGEST}",
        ("aclrtReserveMemAddress", "&none", LARGEST + 1, 0, None, 0),
    ),
    *refused(
        RT_INVALID,
        "alignment is 8 and expectPtr (nil), expected 0 and a null pointer",
        ("aclrtReserveMemAddress", "&none", PAGE, 8, None, 0),
    ),
    *refused(
        RT_INVALID,
        "alignment is 0 and expectPtr {host}, expected 0 and a null pointer",
        ("aclrtReserveMemAddress", "&none", PAGE, 0, "host", 0),
    ),
    *refused(
        RT_INVALID,
        "flags is 2, expected 0 (normal pages) or 1 (huge pages)",
        ("aclrtReserveMemAddress", "&none", PAGE, 0, None, 2),
    ),
    *refused(
        "ACL_ERROR_RT_MEMORY_ALLOCATION",
        f"the host cannot reserve {LARGEST} bytes of contiguous address space",
        ("aclrtReserveMemAddress", "&none", LARGEST, 0, None, 0),
    ),
    *refused(
        RT_INVALID,
        "{host} is not the beginning of a range of aclrtReserveMemAddress",
        ("aclrtReleaseMemAddress", "host"),
    ),
    *refused(
        RT_INVALID,
        "memory is mapped in the range of {reserved}; call aclrtUnmapMem first",
        ("aclrtReleaseMemAddress", "reserved"),
        before=MAPPED,
        after=UNMAPPED,
    ),
    *refused(
        RT_INVALID,
        "option is 2, expected 0 (the least) or 1 (the recommended)",
        ("aclrtMemGetAllocationGranularity", "out", 2, "out"),
    ),
    *refused(
        RT_INVALID,
        f"size is {PAGE + 1}, expected a multiple of the page size {PAGE}",
        ("aclrtMallocPhysical", "&none", PAGE + 1, PHYSICAL, 0),
    ),
    *refused(
        RT_INVALID,
        "flags is 1, expected 0",
        ("aclrtMallocPhysical", "&none", PAGE, PHYSICAL, 1),
        ("aclrtMapMem", "reserved", PAGE, 0, "host", 1),
    ),
    *refused(
        RT_UNSUPPORTED,
        "location.type is 0, expected the memory of a device; the host CANN implements no other",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 0, 0, 0, 0, 0), 0),
    ),
    *refused(
        RT_INVALID,
        "handleType is 2 and allocationType 0, expected 0 and 0",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 2, 0, 0, 0, 1, 0), 0),
    ),
    *refused(
        RT_INVALID,
        "handleType is 0 and allocationType 1, expected 0 and 0",
        ("aclrtMallocPhysical", "&none", PAGE, struct.pack("iiiIiQ", 0, 1, 0, 0, 1, 0), 0),
    ),
    *refused(
        RT_INVALID, NO_PHYSICAL, ("aclrtFreePhysical", "memory"), ("aclrtMapMem", "reserved", PAGE, 0, "memory", 0)
    ),
    *refused(
        RT_INVALID,
        f"offset is 8 and size {PAGE}, expected 0 and {PAGE}; physical memory is mapped as a whole",
        ("aclrtMapMem", "reserved", PAGE, 8, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        f"offset is 0 and size {2 * PAGE}, expected 0 and {PAGE}; physical memory is mapped as a whole",
        ("aclrtMapMem", "reserved", 2 * PAGE, 0, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        f"{PAGE} bytes at {{reserved+8}} are not whole pages inside a range of aclrtReserveMemAddress",
        ("aclrtMapMem", "reserved+8", PAGE, 0, "physical", 0),
        before=HAVE_PHYSICAL,
        after=FREE_PHYSICAL,
    ),
    *refused(
        RT_INVALID,
        "memory is mapped already at {reserved}; call aclrtUnmapMem first",
        ("aclrtMapMem", "reserved", PAGE, 0, "physical", 0),
        before=MAPPED,
        after=UNMAPPED,
    ),
    *refused(RT_INVALID, "{reserved} is not the beginning of a mapping", ("aclrtUnmapMem", "reserved")),
]
