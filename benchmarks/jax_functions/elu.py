"""ELU."""


def functions(jax, others):
    jnp = jax.numpy

    def elu(x, alpha=1.0, scale=1.0):
        wide = x.astype(jnp.float32)
        return jnp.where(wide > 0, scale * wide, scale * alpha * jnp.expm1(wide)).astype(x.dtype)

    def elu_backward(g, v, alpha=1.0, scale=1.0, is_result=False):
        wide = v.astype(jnp.float32)
        slope = wide + scale * alpha if is_result else scale * alpha * jnp.exp(wide)
        return (g.astype(jnp.float32) * jnp.where(wide > 0, scale, slope)).astype(g.dtype)

    return {"elu": elu, "elu_backward": elu_backward}
