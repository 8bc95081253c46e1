"""GELU."""


def functions(jax, others):
    jnp = jax.numpy

    def gelu(x, approximate="none"):
        return jax.nn.gelu(x.astype(jnp.float32), approximate == "tanh").astype(x.dtype)

    def gelu_backward(g, x, approximate="none"):
        _, pull = jax.vjp(lambda wide: jax.nn.gelu(wide, approximate == "tanh"), x.astype(jnp.float32))
        return pull(g.astype(jnp.float32))[0].astype(g.dtype)

    return {"gelu": gelu, "gelu_backward": gelu_backward}
