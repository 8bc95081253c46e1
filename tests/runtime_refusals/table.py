"""All refusals, in the order of their calls, and their names."""

from __future__ import annotations

from tests.runtime_refusals.before_a_device import WITHOUT_DEVICE
from tests.runtime_refusals.captures import BEGIN, CAPTURES, END
from tests.runtime_refusals.descriptors import DESCRIPTORS
from tests.runtime_refusals.devices import DEVICES
from tests.runtime_refusals.hccl import HCCL
from tests.runtime_refusals.memory import MEMORY
from tests.runtime_refusals.null_pointers import NULL_POINTERS, UNIMPLEMENTED
from tests.runtime_refusals.operators_by_name import DESCRIPTIONS
from tests.runtime_refusals.profiles import PROFILES
from tests.runtime_refusals.refusal import refused
from tests.runtime_refusals.streams import DESTROY, OF_STREAM, STREAMS

# A stream waits at least a second: the last of all calls.
LAST = refused(
    "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT",
    "the external event was not recorded before the timeout",
    ("aclrtSynchronizeStream", "own"),
    by="aclrtStreamWaitEvent",
    before=[
        ("aclrtSetOpWaitTimeout", 1),
        *BEGIN,
        ("aclrtStreamWaitEvent", "stream", "external"),
        END[0],
        *OF_STREAM,
        ("aclmdlRIExecuteAsync", "model", "own"),
    ],
    after=[*DESTROY, END[1]],
)

ON_DEVICE = [
    *(*NULL_POINTERS, *UNIMPLEMENTED, *DEVICES, *MEMORY, *STREAMS, *CAPTURES),
    *(*DESCRIPTORS, *DESCRIPTIONS, *PROFILES, *HCCL, *LAST),
]
ALL = WITHOUT_DEVICE + ON_DEVICE


def identifiers() -> list[str]:
    """The name of each test: the function's, with a number."""
    counts: dict[str, int] = {}
    names = []
    for refusal in ALL:
        function = str(refusal.call[0])
        counts[function] = counts.get(function, 0) + 1
        names.append(f"{function}-{counts[function]}")
    return names


IDS = identifiers()
