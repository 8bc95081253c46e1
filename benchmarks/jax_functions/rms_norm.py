"""RMSNorm."""


def functions(jax, others):
    jnp, lax = jax.numpy, jax.lax

    def rms_norm(x, gain, epsilon):
        wide = x.astype(jnp.float32)
        rstd = lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + epsilon)
        return (wide * rstd * gain.astype(jnp.float32)).astype(x.dtype), rstd

    def rms_norm_grad(dy, x, rstd, gain):
        wide = dy.astype(jnp.float32)
        normal, upstream = x.astype(jnp.float32) * rstd, wide * gain.astype(jnp.float32)
        dx = rstd * (upstream - normal * jnp.mean(upstream * normal, -1, keepdims=True))
        return dx.astype(x.dtype), jnp.sum(wide * normal, 0)

    return {"rms_norm": rms_norm, "rms_norm_grad": rms_norm_grad}
