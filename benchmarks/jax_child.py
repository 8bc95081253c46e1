"""JAX's side of the comparison: a process that computes and times on request, without torch.

jax_peer.py starts it with any interpreter that has jax, and one argument, the number of threads. It answers every line
of JSON on its input with one on its output; tensors are files of raw numbers.

    {"load": FUNCTION, "options": {...}, "inputs": [TENSOR...]}  compiles, runs once: {"results": [TENSOR...]}
    {"time": CALLS}                                              the seconds of a call: {"seconds": S}
    {"unload": true}                                             forgets the tensors: {}

The first line, written unasked, is {"jax": VERSION}. Any failure is answered with {"error": TEXT}.
"""

import json
import os
import runpy
import sys
import tempfile
import timeit
from pathlib import Path


def take_cores(threads):
    """Limits the cores that XLA sees to the number of threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def functions(jax):
    """The functions in files, by the operators' names. Like ours, they compute in float32 and round once.

    Each file in jax_functions has those of one operator; it is executed, because its folder is not a package here.
    """
    found = {}
    for path in sorted((Path(__file__).parent / "jax_functions").glob("*.py")):
        found |= runpy.run_path(str(path))["functions"](jax, found)
    return found


def of_nn(jax, name):
    """The same of an operator without a file: jax.nn's function of its name but for underscores, or its gradient."""
    forward, backward, _ = name.partition("_backward")
    found = {each.replace("_", ""): function for each, function in vars(jax.nn).items()}[forward.replace("_", "")]

    def rounded(x):
        return found(x.astype("float32")).astype(x.dtype)

    def gradient(g, x):
        return jax.vjp(found, x.astype("float32"))[1](g.astype("float32"))[0].astype(g.dtype)

    return gradient if backward else rounded


class Worker:
    """Executes the lines."""

    def __init__(self):
        import jax

        self._jax, self._functions = jax, functions(jax)
        self._call = None

    def _dtype(self, name):
        return self._jax.numpy.dtype(name)

    def answer(self, line):
        """The answer to one line."""
        if "load" in line:
            return self._load(line["load"], line["options"], line["inputs"])
        if "time" in line:
            self._call()  # wakes the threads
            seconds = timeit.timeit(lambda: self._jax.block_until_ready(self._call()), number=line["time"])
            return {"seconds": seconds / line["time"]}
        self._call = None
        return {}

    def _load(self, name, options, inputs):
        import numpy

        arrays = []
        for tensor in inputs:
            array = numpy.fromfile(tensor["file"], dtype=self._dtype(tensor["dtype"]))
            arrays.append(self._jax.numpy.asarray(array.reshape(tensor["shape"])))
        function = self._functions.get(name) or of_nn(self._jax, name)
        compiled = self._jax.jit(lambda *arrays: function(*arrays, **options))
        self._call = lambda: compiled(*arrays)
        results = self._jax.block_until_ready(self._call())
        described = []
        directory = os.path.dirname(inputs[0]["file"])
        for result in results if isinstance(results, tuple) else (results,):
            array = numpy.asarray(result)
            number, path = tempfile.mkstemp(dir=directory)
            os.close(number)
            array.tofile(path)
            described.append({"file": path, "dtype": array.dtype.name, "shape": array.shape})
        return {"results": described}


def main():
    """Answers until the input ends."""
    # Redirects the output of libraries.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    take_cores(int(sys.argv[1]))
    try:
        worker = Worker()
        answers.write(json.dumps({"jax": worker._jax.__version__}) + "\n")
    except Exception as error:
        answers.write(json.dumps({"error": str(error)}) + "\n")
        return
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
