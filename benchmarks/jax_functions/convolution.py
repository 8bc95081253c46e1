"""Convolution."""


def functions(jax, others):
    jnp, lax = jax.numpy, jax.lax

    def convolve(x, filters, stride, padding, dilation, transposed, output_padding, groups):
        rank = len(stride)
        if transposed:  # a convolution of the dilated images by the flipped filters
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

    return {"convolution": convolution, "convolution_backward": convolution_backward}
