"""Refusals of descriptors and executors."""

from __future__ import annotations

from tests.runtime_refusals.captures import END, UPDATE
from tests.runtime_refusals.objects import LIST
from tests.runtime_refusals.refusal import BAD, INNER, INVALID, NULL, Argument, Call, Refusal, null, refused
from tests.runtime_refusals.streams import BUSY, DESTROY, END_BUSY, NO_STREAM, OF_STREAM, RELEASE

OTHER_KIND = "which was destroyed, or is another kind of object"
ELU: Call = ("aclnnEluGetWorkspaceSize", "tensor", "scalar", "scalar", "scalar", "result", "&size", "&executor")
STAGE_1 = [ELU]
REPEATABLE: list[Call] = [ELU, ("aclSetAclOpExecutorRepeatable", "executor")]
DISCARD: list[Call] = [("aclDestroyAclOpExecutor", "executor")]
CAT: list[Call] = [
    ("aclnnCatGetWorkspaceSize", "list", 0, "result", "&size", "&executor"),
    ("aclSetAclOpExecutorRepeatable", "executor"),
]
CONSUMED = (
    "executor was consumed by its second stage, or destroyed; run the first stage again, or make the executor "
    "repeatable with aclSetAclOpExecutorRepeatable"
)
NO_EXECUTOR = "executor is not a handle that stage 1 returned; pass the one that GetWorkspaceSize wrote"


AS_MANY = "allocate as many bytes as sizes, strides and offset need"
PADDING = "or let tensors use the padding of a block as a device does (environment variable ACLNN_TORCH_PADDING=1)"


def elu_of(address: Argument) -> list[Call]:
    """Stage 1 on a tensor at that address."""
    tensor: Call = ("x=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, address)
    return [tensor, (ELU[0], "x", *ELU[2:])]


NO_ELU: list[Call] = [("aclDestroyTensor", "x")]


def of_descriptor(call: Call, *names: str) -> list[Refusal]:
    """A function of a descriptor, without each argument, and with another kind of object."""
    given = null(call, *names, status=NULL, text="{} is null")
    other = (call[0], "scalar", *call[2:])
    return [*given, *refused(BAD, f"{names[0]} is {{scalar}}, {OTHER_KIND}", other)]


def addresses(function: str, objects: str) -> list[Refusal]:
    """A function that sets an address of an executor's tensors."""
    position: Call = (0, 0) if objects == "tensors" else (0,)
    return [
        *refused(
            "ACLNN_ERR_INNER_NULLPTR",
            "executor is null",
            (function, None, *position, "tensor", "memory"),
            ("Acl" + function[3:], None, *position, "tensor", "memory"),
            by=function,
        ),
        *refused("ACLNN_ERR_INNER_NULLPTR", f"{objects} is null", (function, "host", *position, None, "memory")),
        *refused(INNER, NO_EXECUTOR, (function, "host", *position, "tensor", "memory")),
        *refused(INNER, CONSUMED, (function, "executor", *position, "tensor", "memory"), before=[*STAGE_1, *DISCARD]),
    ]


DESCRIPTORS = [
    *refused(
        "ACL_SUCCESS",
        "value is null although size is not 0",
        ("aclCreateIntArray", None, 1),
        ("aclCreateFloatArray", None, 1),
        ("aclCreateBoolArray", None, 1),
        ("aclCreateTensorList", None, 1),
        ("aclCreateScalarList", None, 1),
        is_status=False,
    ),
    *refused(
        "ACL_SUCCESS", f"an element is {{scalar}}, {OTHER_KIND}", ("aclCreateTensorList", "&scalar", 1), is_status=False
    ),
    *refused(
        "ACL_SUCCESS", f"an element is {{tensor}}, {OTHER_KIND}", ("aclCreateScalarList", "&tensor", 1), is_status=False
    ),
    *refused(
        BAD,
        f"array is {{scalar}}, {OTHER_KIND}",
        ("aclDestroyIntArray", "scalar"),
        ("aclDestroyFloatArray", "scalar"),
        ("aclDestroyBoolArray", "scalar"),
        ("aclDestroyTensorList", "scalar"),
        ("aclDestroyScalarList", "scalar"),
    ),
    *refused(BAD, f"array is {{array}}, {OTHER_KIND}", ("aclDestroyFloatArray", "array")),
    *refused(BAD, f"scalar is {{tensor}}, {OTHER_KIND}", ("aclDestroyScalar", "tensor")),
    *refused(BAD, f"tensor is {{scalar}}, {OTHER_KIND}", ("aclDestroyTensor", "scalar")),
    *of_descriptor(("aclGetIntArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetFloatArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetBoolArraySize", "array", "out"), "array", "size"),
    *of_descriptor(("aclGetTensorListSize", "array", "out"), "tensorList", "size"),
    *of_descriptor(("aclGetScalarListSize", "array", "out"), "scalarList", "size"),
    *of_descriptor(("aclGetViewShape", "tensor", "&none", "out"), "tensor", "viewDims", "viewDimsNum"),
    *of_descriptor(("aclGetStorageShape", "tensor", "&none", "out"), "tensor", "storageDims", "storageDimsNum"),
    *of_descriptor(("aclGetViewStrides", "tensor", "&none", "out"), "tensor", "stridesValue", "stridesNum"),
    *of_descriptor(("aclGetViewOffset", "tensor", "out"), "tensor", "offset"),
    *of_descriptor(("aclGetFormat", "tensor", "out"), "tensor", "format"),
    *of_descriptor(("aclGetDataType", "tensor", "out"), "tensor", "dataType"),
    *of_descriptor(("aclSetRawTensorAddr", "tensor", "memory"), "tensor"),
    *of_descriptor(("aclGetRawTensorAddr", "tensor", "&none"), "tensor", "addr"),
    *of_descriptor(("aclInitTensor", "tensor", LIST, 1, 0, None, 0, 2, LIST, 1, "memory"), "tensor"),
    *refused("ACL_SUCCESS", "value is null", ("aclCreateScalar", None, 0), is_status=False),
    *refused(
        "ACL_SUCCESS", "the data type is 13, which a scalar cannot have", ("aclCreateScalar", LIST, 13), is_status=False
    ),
    *refused(
        "ACL_SUCCESS",
        "viewDims is null although its count is not 0",
        ("aclCreateTensor", None, 1, 0, None, 0, 2, LIST, 1, "memory"),
        is_status=False,
    ),
    *refused(
        "ACL_SUCCESS",
        "storageDims is null although its count is not 0",
        ("aclCreateTensor", LIST, 1, 0, None, 0, 2, None, 1, "memory"),
        is_status=False,
    ),
    *refused(
        NULL,
        "viewDims is null although its count is not 0",
        ("aclInitTensor", "tensor", None, 1, 0, None, 0, 2, LIST, 1, "memory"),
    ),
    *refused(
        NULL,
        "storageDims is null although its count is not 0",
        ("aclInitTensor", "tensor", LIST, 1, 0, None, 0, 2, None, 1, "memory"),
    ),
    # dumps
    *null(
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, None),
        *("opType", "opName", "tensors"),
        status=NULL,
        text="{} is null",
    ),
    # functions of operators that have no executor
    *null(
        ("aclnnNpuFormatCastCalculateSizeAndFormat", "tensor", 29, -1, "&none", "out", "out"),
        *("srcTensor", "dstShape", "dstShapeSize", "actualFormat"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnCalculateConvolutionWeightSize", "array", 0, 1, 1, "out"),
        *("tensorShape", "weightTensorSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnCalculateMatmulWeightSize", "array", "out"),
        *("tensorShape", "weightTensorSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnTransQuantParam", "host", 1, None, 0, "&none", "out"),
        *("scaleArray", "quantParam", "quantParamSize"),
        status=NULL,
        text="{} is null",
    ),
    *null(
        ("aclnnTransSparse4to2Para", "host", "array", *("&none", "&none", "out", "&none", "&none", "out")),
        *("weight", "shape", "sparseWeight", "sparseWeightDims"),
        *("sparseWeightDimsNum", "index", "indexDims", "indexDimsNum"),
        status=NULL,
        text="{} is null",
    ),
    Refusal(
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, "gone_stream"),
        "ACLNN_ERR_RUNTIME_ERROR",
        f"aclDumpOpTensors: the stream failed with 107017\naclrtSynchronizeStream: {NO_STREAM}",
    ),
    *refused(
        BAD, f"a tensor is {{scalar}}, {OTHER_KIND}", ("aclDumpOpTensors", b"Elu", b"name", "&scalar", 1, 0, None)
    ),
    *refused(
        INNER,
        "cannot write missing/Elu.name.input.0.bin: No such file or directory",
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 1, 0, None),
    ),
    *refused(
        INNER,
        "cannot write missing/Elu.name.output.0.bin: No such file or directory",
        ("aclDumpOpTensors", b"Elu", b"name", "&tensor", 0, 1, None),
    ),
    *refused(
        BAD,
        "the memory of tensor 0 was freed before it was written; free it after the call",
        ("aclDumpOpTensors", b"Elu", b"name", "&brief_tensor", 1, 0, None),
        before=[
            ("aclrtMalloc", "&brief", 64, 2),
            ("brief_tensor=aclCreateTensor", LIST, 1, 0, None, 0, 2, LIST, 1, "brief"),
            ("aclrtFree", "brief"),
        ],
        after=[("aclDestroyTensor", "brief_tensor")],
    ),
    # executors
    *refused(
        "ACLNN_ERR_INNER_NULLPTR",
        "executor is null",
        ("aclSetAclOpExecutorRepeatable", None),
        ("aclDestroyAclOpExecutor", None),
        ("aclDestroyOpExecutor", None),
    ),
    *refused(
        INNER,
        NO_EXECUTOR,
        ("aclSetAclOpExecutorRepeatable", "host"),
        ("aclDestroyAclOpExecutor", "host"),
        ("aclDestroyOpExecutor", "host"),
        ("aclnnElu", None, 0, "host", None),
    ),
    *refused(
        INNER,
        CONSUMED,
        ("aclSetAclOpExecutorRepeatable", "executor"),
        ("aclDestroyAclOpExecutor", "executor"),
        ("aclDestroyOpExecutor", "executor"),
        before=[*STAGE_1, *DISCARD],
    ),
    *refused(NULL, CONSUMED, ("aclnnElu", None, 0, "executor", None), before=[*STAGE_1, *DISCARD]),
    *addresses("aclSetTensorAddr", "tensor"),
    *addresses("aclSetInputTensorAddr", "tensor"),
    *addresses("aclSetOutputTensorAddr", "tensor"),
    *addresses("aclSetDynamicTensorAddr", "tensors"),
    *addresses("aclSetDynamicInputTensorAddr", "tensors"),
    *addresses("aclSetDynamicOutputTensorAddr", "tensors"),
    *(
        Refusal(call, BAD, f"{call[0]}: {text}", REPEATABLE, DISCARD)
        for text, call in (
            (
                "index is 2, expected less than the number of tensor arguments of aclnnElu, 2",
                ("aclSetTensorAddr", "executor", 2, "tensor", "memory"),
            ),
            (
                "index is 1, expected less than the number of tensor inputs of aclnnElu, 1",
                ("aclSetInputTensorAddr", "executor", 1, "tensor", "memory"),
            ),
            (
                "index is 3, expected less than the number of tensor outputs of aclnnElu, 1",
                ("aclSetOutputTensorAddr", "executor", 3, "tensor", "memory"),
            ),
            (
                "irIndex is 2, expected less than the number of tensor arguments of aclnnElu, 2",
                ("aclSetDynamicTensorAddr", "executor", 2, 0, "tensor", "memory"),
            ),
            (
                "argument 1 of aclnnElu is a tensor, expected a list; call aclSetTensorAddr",
                ("aclSetDynamicTensorAddr", "executor", 1, 0, "tensor", "memory"),
            ),
            (
                "input 0 of aclnnElu is a tensor, expected a list; call aclSetInputTensorAddr",
                ("aclSetDynamicInputTensorAddr", "executor", 0, 0, "tensor", "memory"),
            ),
            (
                "output 0 of aclnnElu is a tensor, expected a list; call aclSetOutputTensorAddr",
                ("aclSetDynamicOutputTensorAddr", "executor", 0, 0, "tensor", "memory"),
            ),
        )
    ),
    *(
        Refusal(call, BAD, f"{call[0]}: {text}", CAT, DISCARD)
        for text, call in (
            (
                "argument 0 of aclnnCat is a list, expected a tensor; call aclSetDynamicTensorAddr",
                ("aclSetTensorAddr", "executor", 0, "tensor", "memory"),
            ),
            (
                "input 0 of aclnnCat is a list, expected a tensor; call aclSetDynamicInputTensorAddr",
                ("aclSetInputTensorAddr", "executor", 0, "tensor", "memory"),
            ),
            (
                "relativeIndex is 1, expected less than the size of the list that is argument 0 of aclnnCat, 1",
                ("aclSetDynamicTensorAddr", "executor", 0, 1, "list", "memory"),
            ),
            (
                "relativeIndex is 2, expected less than the size of the list that is input 0 of aclnnCat, 1",
                ("aclSetDynamicInputTensorAddr", "executor", 0, 2, "list", "memory"),
            ),
        )
    ),
    *refused(NULL, "executor is null; run aclnnEluGetWorkspaceSize first", ("aclnnElu", None, 0, None, None)),
    *refused(
        NULL,
        "workspace is null, expected 64 bytes; allocate as many as stage 1 returned",
        ("aclnnElu", None, 64, "executor", None),
        before=STAGE_1,
    ),
    *refused(
        INNER,
        "the executor was made by aclnnEluGetWorkspaceSize, for another operator; pass each executor to the second "
        "stage of its own operator",
        ("aclnnSilu", None, 0, "executor", None),
        before=STAGE_1,
    ),
    *refused(
        NULL,
        "tensor argument 0 has elements but a null address; pass the address of its memory to aclCreateTensor, or set "
        "it with aclSetTensorAddr",
        ("aclnnElu", None, 0, "executor", None),
        before=elu_of(None),
        after=NO_ELU,
    ),
    *(
        refusal
        for address, block, place in (
            ("memory+56", "memory", f"aclrtMalloc, at {{memory}}; {AS_MANY}, {PADDING}"),
            ("memory+88", "memory", f"aclrtMalloc, at {{memory}}; {AS_MANY}"),
            ("pinned+56", "pinned", f"aclrtMallocHost, at {{pinned}}; {AS_MANY}"),
        )
        for refusal in refused(
            BAD,
            f"tensor argument 0 (shape [4]) needs 16 bytes at {{{address}}}, which reaches outside its block: 64 bytes "
            f"were requested from {place}",
            ("aclnnElu", None, 0, "executor", None),
            before=elu_of(address),
            after=NO_ELU,
        )
    ),
    *refused(
        "ACL_ERROR_RT_COPY_DATA",
        "the memory of tensor argument 0 (shape [4]) was freed before the stream ran the operator; free it after the "
        "stream is synchronised, and set the address anew after memory is allocated again",
        ("aclrtSynchronizeStream", "own"),
        by="aclnnElu",
        before=[
            *BUSY,
            ("aclrtMalloc", "&brief", 64, 2),
            *elu_of("brief"),
            ("aclnnElu", None, 0, "executor", "own"),
            ("aclrtFree", "brief"),
            *RELEASE,
        ],
        after=[*NO_ELU, *END_BUSY],
    ),
    *refused(
        "ACL_ERROR_RT_AICORE_EXCEPTION",
        "tensor argument 0 (shape [4]) is in the memory of device 1, but the stream belongs to device 0; copy it to "
        "the stream's device first",
        ("aclrtSynchronizeStream", "own"),
        by="aclnnElu",
        before=[*OF_STREAM, *elu_of("memory1"), ("aclnnElu", None, 0, "executor", "own")],
        after=[*NO_ELU, *DESTROY],
    ),
    *refused(
        "ACL_ERROR_RT_INTERNAL_ERROR",
        "the number of operators that the stream was given is 1, expected 0, as many as the group has; the group is as "
        "it was",
        ("aclmdlRICaptureTaskUpdateEnd", "other"),
        before=[*UPDATE, *STAGE_1, ("aclnnElu", None, 0, "executor", "other")],
        after=[END[1]],
    ),
    *refused(
        BAD,
        "self, or an element of it, was destroyed, or is another kind of object; destroy descriptors after the call",
        (ELU[0], "scalar", *ELU[2:]),
        by="aclnnElu",
    ),
    *refused(NULL, "staticKernelPath is null", ("aclnnReselectStaticKernelWithPath", None)),
    *refused(
        BAD,
        'staticKernelPath is "missing", expected a path that exists',
        ("aclnnReselectStaticKernelWithPath", b"missing"),
    ),
    # traces
    *refused(
        INVALID,
        "missing/trace cannot be opened for writing: No such file or directory",
        ("aclHostTrace", b"missing/trace"),
    ),
    *refused(
        INVALID,
        "another trace is already writing trace; name another file",
        ("aclHostTrace", b"trace"),
        before=[("aclHostTrace", b"trace")],
        after=[("aclHostTraceEnd", b"trace")],
    ),
    *refused(INVALID, "no trace is writing trace; begin one with aclHostTrace", ("aclHostTraceEnd", b"trace")),
]
