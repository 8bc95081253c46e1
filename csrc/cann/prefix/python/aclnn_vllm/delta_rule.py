"""Linear attention: gated delta rules, and the causal convolutions before them."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence

import torch

from .calls import call
from .definitions import operator

Tensor = torch.Tensor


@operator(
    "npu_fused_gdn_gating(Tensor A_log, Tensor a, Tensor b, Tensor dt_bias, float beta=1.0, float threshold=20.0)"
    " -> (Tensor g, Tensor beta_output)"
)
def npu_fused_gdn_gating(
    A_log: Tensor, a: Tensor, b: Tensor, dt_bias: Tensor, beta: float = 1.0, threshold: float = 20.0
) -> tuple[Tensor, Tensor]:
    """The decay -exp(A_log) softplus(a + dt_bias) and the rate sigmoid(b)."""
    softplus = torch.nn.functional.softplus(a.float() + dt_bias.float(), beta, threshold)
    return (-A_log.float().exp() * softplus).unsqueeze(0), b.float().sigmoid().to(b.dtype).unsqueeze(0)


def recurrent(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor | None,
    state: Tensor,
    lengths: Tensor,
    state_indices: Tensor,
    g: Tensor | None,
    gk: Tensor | None,
    accepted: Tensor | None,
    scale: float,
    out: Tensor,
) -> Tensor:
    """The gated delta rule, token by token; each token's state is written to its place in `state`."""
    rates = beta if beta is not None else query.new_ones(value.shape[:2])
    # Tokens that belong to no sequence may have -1.
    places = state_indices.clamp_min(0)
    call(
        *("aclnnRecurrentGatedDeltaRule", query, key, value, rates, state, lengths, places, g, gk, accepted),
        *(ctypes.c_float(scale), out),
    )
    return out


@operator(
    "npu_recurrent_gated_delta_rule(Tensor query, Tensor key, Tensor value, Tensor(a!) state, *, Tensor? beta=None,"
    " float? scale=None, Tensor? actual_seq_lengths=None, Tensor? ssm_state_indices=None,"
    " Tensor? num_accepted_tokens=None, Tensor? g=None, Tensor? gk=None) -> Tensor"
)
def npu_recurrent_gated_delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: Tensor,
    *,
    beta: Tensor | None = None,
    scale: float | None = None,
    actual_seq_lengths: Tensor | None = None,
    ssm_state_indices: Tensor | None = None,
    num_accepted_tokens: Tensor | None = None,
    g: Tensor | None = None,
    gk: Tensor | None = None,
) -> Tensor:
    """The rule for sequences whose lengths follow the first token's place, which is 0, in actual_seq_lengths."""
    if scale is None or actual_seq_lengths is None or ssm_state_indices is None:
        missing = "scale, actual_seq_lengths or ssm_state_indices"
        raise ValueError(f"npu_recurrent_gated_delta_rule: {missing} is None, expected a value")
    return recurrent(
        *(query, key, value, beta, state, actual_seq_lengths[1:], ssm_state_indices, g, gk, num_accepted_tokens),
        *(scale, value.new_empty(value.shape, dtype=torch.bfloat16)),
    )


@operator(
    "npu_recurrent_gated_delta_rule_310(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor state,"
    " Tensor actual_seq_lengths, Tensor ssm_state_indices, Tensor? g, Tensor? gk, Tensor? num_accepted_tokens,"
    " float scale_value=1.0) -> (Tensor output)"
)
def npu_recurrent_gated_delta_rule_310(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    state: Tensor,
    actual_seq_lengths: Tensor,
    ssm_state_indices: Tensor,
    g: Tensor | None,
    gk: Tensor | None,
    num_accepted_tokens: Tensor | None,
    scale_value: float = 1.0,
) -> Tensor:
    """The rule on Ascend310P."""
    return recurrent(
        *(query, key, value, beta, state, actual_seq_lengths, ssm_state_indices, g, gk, num_accepted_tokens),
        *(scale_value, torch.empty_like(value)),
    )


def convolve(
    x: Tensor,
    weight: Tensor,
    states: Tensor,
    bias: Tensor | None,
    starts: Tensor | None,
    indices: Tensor | None,
    initial: Tensor | None,
    accepted: Tensor | None,
    activation: int,
    pad_slot: int,
    mode: int,
    out: Tensor,
) -> Tensor:
    """Convolves the first tokens of sequences (mode 0), or the next ones (mode 1)."""
    name = "silu" if activation else "none"
    if mode == 0:
        initial = None if initial is None else initial.int()
        call(
            *("aclnnCausalConv1dFn", x, weight, states, bias, starts, indices, initial, None, None, None, None),
            *(name, pad_slot, 1, out),
        )
    elif accepted is not None or (x.dim() == 3 and x.size(1) > 1):
        call(
            *("aclnnCausalConv1dUpdate", x, weight, states, bias, starts, indices, accepted, None, None, name),
            *(pad_slot, -1, out),
        )
    else:
        # One token of each sequence. Those behind the last sequence have the index pad_slot.
        tokens, results = x.view(-1, 1, x.size(-1)), out.view(-1, 1, x.size(-1))
        call(
            *("aclnnCausalConv1dUpdate", tokens, weight, states, bias, None, indices, None, None, None, name),
            *(pad_slot, -1, results),
        )
    return out


@operator(
    "npu_causal_conv1d_custom(Tensor output, Tensor x, Tensor weight, Tensor conv_state, Tensor? bias_opt,"
    " Tensor? query_start_loc_opt, Tensor? cache_indices_opt, Tensor? initial_state_mode_opt,"
    " Tensor? num_accepted_tokens_opt, int activation_mode, int pad_slot_id, int run_mode) -> (Tensor output)"
)
def npu_causal_conv1d_custom(
    output: Tensor,
    x: Tensor,
    weight: Tensor,
    conv_state: Tensor,
    bias_opt: Tensor | None,
    query_start_loc_opt: Tensor | None,
    cache_indices_opt: Tensor | None,
    initial_state_mode_opt: Tensor | None,
    num_accepted_tokens_opt: Tensor | None,
    activation_mode: int,
    pad_slot_id: int,
    run_mode: int,
) -> Tensor:
    """A causal convolution into `output`, which updates the states."""
    return convolve(
        *(x, weight, conv_state, bias_opt, query_start_loc_opt, cache_indices_opt, initial_state_mode_opt),
        *(num_accepted_tokens_opt, activation_mode, pad_slot_id, run_mode, output),
    )


@operator(
    "npu_causal_conv1d_310(Tensor x, Tensor weight, Tensor? bias, Tensor conv_states, Tensor? query_start_loc,"
    " Tensor? cache_indices, Tensor? initial_state_mode, Tensor? num_accepted_tokens, int activation_mode,"
    " int pad_slot_id, int run_mode) -> (Tensor output)"
)
def npu_causal_conv1d_310(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_states: Tensor,
    query_start_loc: Tensor | None,
    cache_indices: Tensor | None,
    initial_state_mode: Tensor | None,
    num_accepted_tokens: Tensor | None,
    activation_mode: int,
    pad_slot_id: int,
    run_mode: int,
) -> Tensor:
    """A causal convolution on Ascend310P, which updates the states."""
    return convolve(
        *(x, weight, conv_states, bias, query_start_loc, cache_indices, initial_state_mode, num_accepted_tokens),
        *(activation_mode, pad_slot_id, run_mode, x.new_empty(x.shape)),
    )


def chunks_of_sequences(tokens: int, size: int | None, bounds: Sequence[int] | None) -> Iterator[list[slice]]:
    """The tokens of the chunks of each sequence; without bounds, each row of the batch is one."""
    for start, stop in itertools.pairwise((0, tokens) if bounds is None else bounds):
        yield [slice(at, min(at + (size or 64), stop)) for at in range(start, stop, size or 64)]


def for_values(keys: Tensor, values: Tensor) -> Tensor:
    """Repeats heads of keys, (batch, heads, ...), so that there are as many as of values."""
    return keys.float().repeat_interleave(values.size(1) // keys.size(1), 1)


FLAGS = "int[]? cu_seqlens=None, int[]? chunk_indices=None"


@operator(
    "chunk_gated_delta_rule_fwd_h(Tensor k, Tensor w, Tensor u, Tensor? g=None, *, Tensor? gk=None,"
    " Tensor? initial_state=None, bool? output_final_state=False, int? chunk_size=None, bool? save_new_value=True,"
    f" {FLAGS}, bool? use_exp2=False, bool? transpose_state_layout=False)"
    " -> (Tensor h_out, Tensor v_new_out, Tensor final_state_out)"
)
def chunk_gated_delta_rule_fwd_h(
    k: Tensor,
    w: Tensor,
    u: Tensor,
    g: Tensor | None = None,
    *,
    gk: Tensor | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool | None = False,
    chunk_size: int | None = None,
    save_new_value: bool | None = True,
    cu_seqlens: Sequence[int] | None = None,
    chunk_indices: Sequence[int] | None = None,
    use_exp2: bool | None = False,
    transpose_state_layout: bool | None = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The state before each chunk, the corrected values u - w h, and the state after each sequence.

    (batch, heads, tokens, size); g is summed from the first token of each chunk.
    """
    if gk is not None or use_exp2 or transpose_state_layout:
        rest = "gk, use_exp2 or transpose_state_layout is not computed on simulated NPUs"
        raise NotImplementedError(f"chunk_gated_delta_rule_fwd_h with {rest}")
    batch, heads, tokens, size = u.shape
    keys, weights, values = for_values(k, u), for_values(w, u), u.float()
    states, corrected, last = [], torch.zeros_like(values), []
    for i, parts in enumerate(chunks_of_sequences(tokens, chunk_size, cu_seqlens)):
        state = values.new_zeros(batch, heads, k.size(3), size)
        if initial_state is not None:
            state = initial_state[i : i + batch].float()
        for part in parts:
            states.append(state)
            correction = values[:, :, part] - weights[:, :, part] @ state
            corrected[:, :, part] = correction
            if g is not None:
                decay = g[:, :, part].float()
                end = decay[:, :, -1:]
                correction = correction * (end - decay).exp().unsqueeze(-1)
                state = state * end.exp().unsqueeze(-1)
            state = state + keys[:, :, part].transpose(2, 3) @ correction
        last.append(state)
    of_chunks = torch.stack(states, 2).to(k.dtype) if states else k.new_zeros(batch, heads, 0, k.size(3), size)
    final = None
    if output_final_state:
        final = torch.cat(last).to(k.dtype if initial_state is None else initial_state.dtype)
    return of_chunks, corrected.to(u.dtype), final


@operator(
    "chunk_fwd_o(Tensor q, Tensor k, Tensor v, Tensor h, float scale, *, Tensor? g=None, Tensor? g_gamma=None,"
    f" {FLAGS}, int? chunk_size=None, bool? transpose_state_layout=False) -> Tensor"
)
def chunk_fwd_o(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    h: Tensor,
    scale: float,
    *,
    g: Tensor | None = None,
    g_gamma: Tensor | None = None,
    cu_seqlens: Sequence[int] | None = None,
    chunk_indices: Sequence[int] | None = None,
    chunk_size: int | None = None,
    transpose_state_layout: bool | None = False,
) -> Tensor:
    """The results of tokens from the state before their chunk and the values of its tokens up to their own."""
    batch, heads, tokens, size = v.shape
    queries, keys, values = for_values(q, v), for_values(k, v), v.float()
    states = h.float().view(batch, heads, -1, q.size(3), size)
    out = torch.zeros_like(values)
    for i, part in enumerate(itertools.chain.from_iterable(chunks_of_sequences(tokens, chunk_size, cu_seqlens))):
        query = queries[:, :, part]
        earlier = query @ states[:, :, i]
        scores = (query @ keys[:, :, part].transpose(2, 3)).tril()
        if g is not None:
            decay = g[:, :, part].float()
            earlier = earlier * decay.exp().unsqueeze(-1)
            scores = scores * (decay.unsqueeze(-1) - decay.unsqueeze(-2)).clamp_max(0).exp()
        out[:, :, part] = scale * (earlier + scores @ values[:, :, part])
    return out.to(v.dtype)
