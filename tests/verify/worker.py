"""The process in which cases run, one at a time, until one of them ends it.

It reads requests from its standard input, and answers on a separate file descriptor, because CANN's libraries write to
the standard ones.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from tests import cabi
from tests.verify.installed import Installed, MissingFunction
from tests.verify.observation import Case, Observation

# A worker's purpose: describe the installed CANN and its machine; run cases of the C interface with it, or with the
# embedded host CANN; run those of torch_npu.
MACHINE, INSTALLED, HOST, TORCH = "machine", "installed", "host", "torch"

CHECKS = "checks of CANN"  # the release whose checks the host CANN makes

VERSION_SIZE = 128  # ACL_PKG_VERSION_MAX_SIZE


def _begin(role: str, product: str, release: str) -> None:
    """Starts the CANN."""
    if role == HOST:
        assert cabi.embedded().aclHostSetProduct(product.encode()) == cabi.SUCCESS, cabi.error_text()
        assert cabi.embedded().aclHostSetCannRelease(release.encode()) == cabi.SUCCESS, cabi.error_text()
    else:
        cabi.use(Installed())
    for function, arguments in (("aclInit", (None,)), ("aclrtSetDevice", (0,))):
        status = getattr(cabi.host(), function)(*arguments)
        # 100002: initialised already.
        assert status in (cabi.SUCCESS, 100002), f"{function}: status {status}: {cabi.error_text()}"


def _machine() -> dict[str, str]:
    """The SoC, the version of CANN, if available, and for the host CANN the release whose checks it makes."""
    soc, version = cabi.host().aclrtGetSocName().decode(), ctypes.create_string_buffer(VERSION_SIZE)
    try:
        known = cabi.host().aclsysGetVersionStr(ctypes.create_string_buffer(b"runtime"), version) == cabi.SUCCESS
    except MissingFunction:
        known = False
    described = {"SoC": soc, "CANN": version.value.decode() if known else "unknown"}
    with suppress(MissingFunction):
        described[CHECKS] = cabi.host().aclHostGetCannRelease().decode()
    return described


def _cases(role: str, product: str, release: str) -> dict[str, Case]:
    """The cases by name."""
    module = importlib.import_module("tests.verify.torch_cases" if role == TORCH else "tests.verify.cases")
    found: dict[str, Case] = {}
    for case in module.cases(product, release):
        found.setdefault(case.name, case)
    return found


def _run(case: Case) -> Observation:
    try:
        return case.run()
    except MissingFunction as error:
        return Observation("missing", str(error))
    except Exception as error:
        return Observation("failed", f"{type(error).__name__}: {error}")


def serve(role: str, product: str, release: str, requests: Iterable[str], answers: int) -> None:
    """Describes the machine; or lists the cases, and then runs those that are requested."""
    if role != TORCH:
        _begin(role, product, release)
    with os.fdopen(answers, "w", buffering=1) as out:
        if role == MACHINE:
            print(json.dumps(_machine()), file=out)
            return
        cases = _cases(role, product, release)
        print(json.dumps([case.described() for case in cases.values()]), file=out)
        for request in requests:
            print(_run(cases[request.rstrip("\n")]).to_json(), file=out)


if __name__ == "__main__":
    serve(*sys.argv[1:4], sys.stdin, int(sys.argv[4]))
