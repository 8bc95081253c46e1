"""LayerNorm."""


def functions(jax, others):
    jnp, lax = jax.numpy, jax.lax

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

    return {"layer_norm": layer_norm, "layer_norm_backward": layer_norm_backward}
