"""The implementation of `aclnn-torch verify`."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.verify import worker
from tests.verify.report import UNEXPLAINED, Report
from tests.verify.run import Gone, Notebook, Verification, Worker, product_of, release_of
from tests.verify.worker import CHECKS


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _driver() -> str:
    """The first lines of npu-smi's table."""
    if shutil.which("npu-smi") is None:
        return "no npu-smi"
    shown = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"Version:\s*(\S+)", shown)
    return found[1] if found else "unknown"


def versions(machine: dict[str, str], product: str, release: str) -> dict[str, str]:
    """The versions that a report concerns."""
    return {
        **machine,
        "product": product,
        CHECKS: release,
        "driver": _driver(),
        "aclnn_torch": _installed("aclnn_torch"),
        "torch": _installed("torch"),
        "torch_npu": _installed("torch_npu"),
        "Python": platform.python_version(),
        "machine": platform.machine(),
    }


def _show(done: int, total: int) -> None:
    if sys.stderr.isatty():
        share = done / max(total, 1)
        print(f"\r[{'#' * round(40 * share):<40}] {done:,} of {total:,} ", end="", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace) -> int:
    """Verifies; returns 0 if everything is equal or explained, 1 if not, 2 if it cannot begin."""
    folder = arguments.output.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    notebook_file = folder / "records.jsonl"
    if arguments.fresh:
        notebook_file.unlink(missing_ok=True)
    try:
        machine = _ask_for_machine(folder)
        product = product_of(arguments.product or machine["SoC"])
        release = arguments.cann or machine.get(CHECKS) or release_of(machine["CANN"])
        facts = versions(machine, product, release)
        notebook = Notebook(notebook_file, facts)
        verification = Verification(product, release, arguments.filter, arguments.timeout, notebook, folder)
    except (ValueError, Gone, re.error) as error:
        print(f"aclnn-torch verify: {error}", file=sys.stderr)
        return 2
    verification.run(_show)
    report = Report(facts, verification.notes, list(notebook.records.values()))
    report.write(folder)
    counts = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    print(report.to_json() if arguments.json else f"{counts}; the report is {folder / 'report.md'}")
    return 1 if report.counts[UNEXPLAINED] else 0


def _ask_for_machine(folder: Path) -> dict[str, str]:
    """The installed CANN and its machine; the log has the reason if it does not start."""
    with (folder / "workers.log").open("w", encoding="utf-8") as log:
        asked = Worker(worker.MACHINE, "", "", 1.0, log)
        try:
            asked.start()
        except Gone as error:
            reason = (folder / "workers.log").read_text(encoding="utf-8").strip().rpartition("\n")[2]
            raise Gone(f"the installed CANN does not start: the process that loads it {error}: {reason}") from error
        finally:
            asked.stop()
        return dict(asked.described)
