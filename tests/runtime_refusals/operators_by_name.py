"""Refusals of descriptions, and of operators by name."""

from __future__ import annotations

import struct

from tests.runtime_refusals.descriptors import OTHER_KIND
from tests.runtime_refusals.objects import LIST
from tests.runtime_refusals.refusal import INVALID, Argument, Refusal, refused


def by_name(text: str, *lists: Argument, attributes: Argument = None) -> list[Refusal]:
    """A call of an operator by name, from the number of its inputs to its outputs."""
    arguments = (b"Elu", *lists, attributes, 0, 0, None, None)
    return refused(INVALID, text, ("aclopCompileAndExecute", *arguments), ("aclopCompileAndExecuteV2", *arguments))


DESCRIPTIONS = [
    *refused(
        INVALID,
        f"dataBuffer is {{scalar}}, {OTHER_KIND}",
        ("aclDestroyDataBuffer", "scalar"),
        ("aclUpdateDataBuffer", "scalar", "memory", 16),
    ),
    *refused(
        INVALID,
        f"desc is {{buffer}}, {OTHER_KIND}",
        ("aclSetTensorFormat", "buffer", 2),
        ("aclSetTensorShape", "buffer", 1, LIST),
        ("aclSetTensorPlaceMent", "buffer", 0),
        ("aclSetTensorConst", "buffer", LIST, 8),
        ("aclGetTensorDescDimV2", "buffer", 0, "out"),
    ),
    *refused(INVALID, f"desc is {{buffer}}, {OTHER_KIND}", ("aclDestroyTensorDesc", "buffer"), is_status=False),
    *refused(INVALID, f"attr is {{buffer}}, {OTHER_KIND}", ("aclopDestroyAttr", "buffer"), is_status=False),
    *refused(
        INVALID,
        f"attr is {{desc}}, {OTHER_KIND}",
        ("aclopSetAttrBool", "desc", b"name", 1),
        ("aclopSetAttrInt", "desc", b"name", 1),
        ("aclopSetAttrFloat", "desc", b"name", 1.0),
        ("aclopSetAttrString", "desc", b"name", b"value"),
        ("aclopSetAttrDataType", "desc", b"name", 0),
        ("aclopSetAttrListBool", "desc", b"name", 1, LIST),
        ("aclopSetAttrListInt", "desc", b"name", 1, LIST),
        ("aclopSetAttrListFloat", "desc", b"name", 1, LIST),
        ("aclopSetAttrListListInt", "desc", b"name", 0, None, None),
    ),
    *refused(INVALID, "attrValue is a null pointer", ("aclopSetAttrString", "attr", b"name", None)),
    *refused(
        INVALID,
        "values is a null pointer, but numValues is 1",
        ("aclopSetAttrListBool", "attr", b"name", 1, None),
        ("aclopSetAttrListInt", "attr", b"name", 1, None),
        ("aclopSetAttrListFloat", "attr", b"name", 1, None),
    ),
    *refused(
        INVALID,
        "numValues is -1, expected 0 or more",
        ("aclopSetAttrListBool", "attr", b"name", -1, LIST),
        ("aclopSetAttrListInt", "attr", b"name", -1, LIST),
        ("aclopSetAttrListFloat", "attr", b"name", -1, LIST),
    ),
    *(
        Refusal(("aclopSetAttrListListInt", "attr", b"name", *lists), INVALID, f"aclopSetAttrListListInt: {text}")
        for text, lists in (
            ("numLists is -1, expected 0 or more", (-1, LIST, "&memory")),
            ("numValues is a null pointer, but numLists is 1", (1, None, "&memory")),
            ("values is a null pointer, but numLists is 2", (2, LIST, None)),
            ("numValues[0] is -1, expected 0 or more", (1, struct.pack("i", -1), "&memory")),
            (
                "values[1] is a null pointer, but numValues[1] is 3",
                (2, struct.pack("ii", 0, 3), struct.pack("QQ", 0, 0)),
            ),
        )
    ),
    *refused(
        INVALID, "dims is a null pointer, but numDims is 1", ("aclCreateTensorDesc", 0, 1, None, 2), is_status=False
    ),
    *refused(INVALID, "numDims is -1, expected 0 or more", ("aclCreateTensorDesc", 0, -1, LIST, 2), is_status=False),
    *refused(INVALID, "dims is a null pointer, but numDims is 2", ("aclSetTensorShape", "desc", 2, None)),
    *refused(INVALID, "numDims is -1, expected 0 or more", ("aclSetTensorShape", "desc", -1, LIST)),
    *refused(
        INVALID, "index is 1, expected less than the number of dims, 1", ("aclGetTensorDescDimV2", "desc", 1, "out")
    ),
    *refused(
        INVALID,
        "opt is 17, expected 0 (ACL_PRECISION_MODE) to 16 (ACL_OP_DEBUG_OPTION)",
        ("aclSetCompileopt", 17, b"value"),
    ),
    *refused(
        INVALID,
        "dumpType is 2, expected ACL_OP_DUMP_OP_AICORE_ARGS (1)",
        ("aclopStartDumpArgs", 2, b"folder"),
        ("aclopStopDumpArgs", 2),
    ),
    *refused(INVALID, "option 3 was never set", ("aclGetCompileopt", 3, "out", 64)),
    *refused(INVALID, "length is 7; the value of option 10 needs 8", ("aclGetCompileopt", 10, "out", 7)),
    *by_name("numInputs is -1, expected 0 or more", -1, "&desc", "&buffer", 0, None, None),
    *by_name("inputDesc is a null pointer, but numInputs is 1", 1, None, "&buffer", 0, None, None),
    *by_name("inputs is a null pointer, but numInputs is 1", 1, "&desc", None, 0, None, None),
    *by_name("numOutputs is -2, expected 0 or more", 0, None, None, -2, "&desc", "&buffer"),
    *by_name("outputDesc is a null pointer, but numOutputs is 2", 0, None, None, 2, None, "&buffer"),
    *by_name("outputs is a null pointer, but numOutputs is 1", 0, None, None, 1, "&desc", None),
    *by_name(f"inputDesc[0] is {{buffer}}, {OTHER_KIND}", 1, "&buffer", "&buffer", 0, None, None),
    *by_name("inputs[0] is a null pointer", 1, "&desc", "out", 0, None, None),
    *by_name("outputDesc[0] is a null pointer", 1, "&desc", "&buffer", 1, "out", "&buffer"),
    *by_name(f"outputs[0] is {{desc}}, {OTHER_KIND}", 1, "&desc", "&buffer", 1, "&desc", "&desc"),
    *by_name(f"attr is {{buffer}}, {OTHER_KIND}", 0, None, None, 0, None, None, attributes="buffer"),
]
