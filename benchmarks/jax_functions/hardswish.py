"""Hardswish."""


def functions(jax, others):
    jnp = jax.numpy

    def hardswish(x):
        wide = x.astype(jnp.float32)
        return (wide * (jnp.clip(wide + 3, 0, 6) / 6)).astype(x.dtype)

    def hardswish_backward(g, x):
        wide = x.astype(jnp.float32)
        slope = jnp.where(wide <= -3, 0, jnp.where(wide < 3, wide / 3 + 0.5, 1))
        return (g.astype(jnp.float32) * slope).astype(g.dtype)

    return {"hardswish": hardswish, "hardswish_backward": hardswish_backward}
