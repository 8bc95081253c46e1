"""JAX's side of the comparison: a process that computes and times what it is told, and nothing of torch.

Started by jax_peer.py with any interpreter that has jax, and one argument, the number of threads. It answers every line
of JSON on its input with one on its output; tensors are files of raw numbers.

    {"load": FUNCTION, "options": {...}, "inputs": [TENSOR...]}  compiles, runs once: {"results": [TENSOR...]}
    {"time": CALLS}                                              the seconds of a call: {"seconds": S}
    {"unload": true}                                             forgets the tensors: {}

The first line it writes, unasked, is {"jax": VERSION}. Any failure is answered with {"error": TEXT}.
"""

import json
import os
import sys
import tempfile
import timeit

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def take_cores(threads):
    """Leaves XLA, which asks for the cores it may use, as many as it shall use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def functions(jax):
    """What can be loaded, by the operators' names. As ours, they compute in float32 and round once."""
    jnp, lax = jax.numpy, jax.lax

    def elu(x, alpha=1.0, scale=1.0):
        wide = x.astype(jnp.float32)
        return jnp.where(wide > 0, scale * wide, scale * alpha * jnp.expm1(wide)).astype(x.dtype)

    def elu_backward(g, v, alpha=1.0, scale=1.0, is_result=False):
        wide = v.astype(jnp.float32)
        slope = wide + scale * alpha if is_result else scale * alpha * jnp.exp(wide)
        return (g.astype(jnp.float32) * jnp.where(wide > 0, scale, slope)).astype(g.dtype)

    def sigmoid(wide):
        return 1 / (1 + jnp.exp(-wide))

    def silu(x):
        wide = x.astype(jnp.float32)
        return (wide * sigmoid(wide)).astype(x.dtype)

    def silu_backward(g, x):
        wide = x.astype(jnp.float32)
        s = sigmoid(wide)
        return (g.astype(jnp.float32) * s * (1 + wide * (1 - s))).astype(g.dtype)

    def gelu(x, approximate="none"):
        return jax.nn.gelu(x.astype(jnp.float32), approximate == "tanh").astype(x.dtype)

    def gelu_backward(g, x, approximate="none"):
        _, pull = jax.vjp(lambda wide: jax.nn.gelu(wide, approximate == "tanh"), x.astype(jnp.float32))
        return pull(g.astype(jnp.float32))[0].astype(g.dtype)

    def rms_norm(x, gain, epsilon):
        wide = x.astype(jnp.float32)
        rstd = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + epsilon)
        return (wide * rstd * gain.astype(jnp.float32)).astype(x.dtype), rstd

    def rms_norm_grad(dy, x, rstd, gain):
        wide = dy.astype(jnp.float32)
        normal, upstream = x.astype(jnp.float32) * rstd, wide * gain.astype(jnp.float32)
        dx = rstd * (upstream - normal * jnp.mean(upstream * normal, -1, keepdims=True))
        return dx.astype(x.dtype), jnp.sum(wide * normal, 0)

    def layer_norm(x, gain, shift, epsilon):
        wide = x.astype(jnp.float32)
        mean = jnp.mean(wide, -1, keepdims=True)
        rstd = lax.rsqrt(jnp.mean(jnp.square(wide - mean), -1, keepdims=True) + epsilon)
        y = (wide - mean) * rstd * gain.astype(jnp.float32) + shift.astype(jnp.float32)
        return y.astype(x.dtype), mean, rstd

    def layer_norm_backward(dy, x, mean, rstd, gain, shift):
        wide = dy.astype(jnp.float32)
        normal, upstream = (x.astype(jnp.float32) - mean) * rstd, wide * gain.astype(jnp.float32)
        share = normal * jnp.mean(upstream * normal, -1, keepdims=True)
        dx = rstd * (upstream - jnp.mean(upstream, -1, keepdims=True) - share)
        return dx.astype(x.dtype), jnp.sum(wide * normal, 0).astype(gain.dtype), jnp.sum(wide, 0).astype(shift.dtype)

    def cross_entropy_loss(x, labels):
        wide = x.astype(jnp.float32)
        log_prob = jax.nn.log_softmax(wide, -1)
        picked = jnp.take_along_axis(log_prob, labels[:, None], -1)
        return -jnp.mean(picked).astype(x.dtype), log_prob.astype(x.dtype)

    def cross_entropy_loss_grad(g, log_prob, labels, rows):
        share = g.astype(jnp.float32) / rows.astype(jnp.float32)
        hit = jnp.arange(log_prob.shape[1]) == labels[:, None]
        return (share * (jnp.exp(log_prob.astype(jnp.float32)) - hit)).astype(log_prob.dtype)

    def convolve(x, filters, stride, padding, dilation, transposed, output_padding, groups):
        rank = len(stride)
        if transposed:  # a convolution of the images with zeros between their pixels, by the filters turned round
            outer, inner, *kernel = filters.shape
            filters = jnp.flip(filters, range(2, rank + 2)).reshape(groups, outer // groups, inner, *kernel)
            filters = jnp.swapaxes(filters, 1, 2).reshape(groups * inner, outer // groups, *kernel)
            edges = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding, strict=True)]
            pads = [(edge, edge + more) for edge, more in zip(edges, output_padding, strict=True)]
            strides, between = [1] * rank, stride
        else:
            pads, strides, between = [(p, p) for p in padding], stride, [1] * rank
        return lax.conv_general_dilated(
            x, filters, strides, pads, lhs_dilation=between, rhs_dilation=dilation, feature_group_count=groups
        )

    def convolution(x, filters, bias, **options):
        return convolve(x, filters, **options) + bias.reshape(-1, *[1] * len(options["stride"]))

    def convolution_backward(g, x, filters, **options):
        _, pull = jax.vjp(lambda *inputs: convolve(*inputs, **options), x, filters)
        of_bias = jnp.sum(g.astype(jnp.float32), (0, *range(2, g.ndim)))
        return *pull(g), of_bias.astype(g.dtype)

    return {
        "elu": elu,
        "elu_backward": elu_backward,
        "selu": lambda x: elu(x, SELU_ALPHA, SELU_SCALE),
        "selu_backward": lambda g, y: elu_backward(g, y, SELU_ALPHA, SELU_SCALE, is_result=True),
        "silu": silu,
        "silu_backward": silu_backward,
        "gelu": gelu,
        "gelu_backward": gelu_backward,
        "layer_norm": layer_norm,
        "layer_norm_backward": layer_norm_backward,
        "rms_norm": rms_norm,
        "rms_norm_grad": rms_norm_grad,
        "cross_entropy_loss": cross_entropy_loss,
        "cross_entropy_loss_grad": cross_entropy_loss_grad,
        "convolution": convolution,
        "convolution_backward": convolution_backward,
    }


class Worker:
    """Does what the lines say."""

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
        function = self._functions[name]
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
    """Answers until its input ends."""
    # What libraries print goes elsewhere.
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
