"""SiLU."""


def functions(jax, others):
    jnp = jax.numpy

    def sigmoid(wide):
        return 1 / (1 + jnp.exp(-wide))

    def silu(x):
        wide = x.astype(jnp.float32)
        return (wide * sigmoid(wide)).astype(x.dtype)

    def silu_backward(g, x):
        wide = x.astype(jnp.float32)
        s = sigmoid(wide)
        return (g.astype(jnp.float32) * s * (1 + wide * (1 - s))).astype(g.dtype)

    return {"silu": silu, "silu_backward": silu_backward}
