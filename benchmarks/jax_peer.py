"""JAX as a peer: a separate process that alternates with this one's providers. See jax_child.py."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

CHILD = Path(__file__).with_name("jax_child.py")


class JaxError(RuntimeError):
    """JAX's process failed on a request."""


class Jax:
    """JAX in a separate process, with a number of threads; idle between requests."""

    def __init__(self, python: str, threads: int):
        try:
            self._process = subprocess.Popen(
                [python, str(CHILD), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise JaxError(str(error)) from error
        try:
            self.version = str(self._read()["jax"])
        except JaxError:
            self.close()
            raise

    def load(self, function: str, options: dict[str, Any], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Passes a function and its inputs; returns its results."""
        with tempfile.TemporaryDirectory() as directory:
            tensors = []
            for number, tensor in enumerate(inputs):
                file = Path(directory) / f"input{number}"
                _bytes(tensor.contiguous()).numpy().tofile(file)
                dtype = str(tensor.dtype).removeprefix("torch.")
                tensors.append({"file": str(file), "dtype": dtype, "shape": list(tensor.shape)})
            answer = self._ask({"load": function, "options": options, "inputs": tensors})
            return tuple(_read_tensor(result) for result in answer["results"])

    def time(self, calls: int) -> float:
        """Seconds per call of the function that was loaded last."""
        return float(self._ask({"time": calls})["seconds"])

    def unload(self) -> None:
        """Frees the tensors of the function that was loaded last."""
        self._ask({"unload": True})

    def close(self) -> None:
        """Ends the process."""
        with self._process as process:
            assert process.stdin
            process.stdin.close()

    def __enter__(self) -> Jax:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _ask(self, line: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(line) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise JaxError("the process has ended") from error
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise JaxError(f"the process ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JaxError(answer["error"])
        return answer


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)


def _read_tensor(described: dict[str, Any]) -> Tensor:
    """A separate tensor from one of the child's files."""
    result = torch.empty(described["shape"], dtype=getattr(torch, described["dtype"]))
    if result.numel():
        _bytes(result).copy_(torch.from_file(described["file"], size=result.nbytes, dtype=torch.uint8))
    return result
