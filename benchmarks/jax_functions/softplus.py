"""Softplus."""


def functions(jax, others):
    jnp = jax.numpy

    def softplus(x, beta=1.0, threshold=20.0):
        wide = x.astype(jnp.float32)
        v = beta * wide
        curve = (jnp.maximum(v, 0) + jnp.log1p(jnp.exp(-jnp.abs(v)))) / beta
        return jnp.where(v > threshold, wide, curve).astype(x.dtype)

    def softplus_backward(g, x, beta=1.0, threshold=20.0):
        v = beta * x.astype(jnp.float32)
        return (g.astype(jnp.float32) * jnp.where(v > threshold, 1, 1 / (1 + jnp.exp(-v)))).astype(g.dtype)

    return {"softplus": softplus, "softplus_backward": softplus_backward}
