"""Speculative decoding."""

from __future__ import annotations

import torch

from .definitions import operator

Tensor = torch.Tensor


@operator(
    "npu_ngram_spec_decode(Tensor(a!) token_ids, Tensor num_tokens_no_spec, Tensor sampled_token_ids,"
    " Tensor discard_request_mask, int vocab_size, int min_n, int max_n, int k)"
    " -> (Tensor token_ids, Tensor next_token_ids, Tensor draft_token_ids, Tensor num_valid_draft_tokens)"
)
def npu_ngram_spec_decode(
    token_ids: Tensor,
    num_tokens_no_spec: Tensor,
    sampled_token_ids: Tensor,
    discard_request_mask: Tensor,
    vocab_size: int,
    min_n: int,
    max_n: int,
    k: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Appends the sampled tokens to each sequence, and drafts what followed the first earlier place of its last tokens.

    The shortest n-gram that occurs earlier counts, from min_n to max_n tokens.
    """
    most = token_ids.size(1)
    places = torch.arange(most, device=token_ids.device)
    lengths = num_tokens_no_spec.long().unsqueeze(1)
    sampled = sampled_token_ids
    is_valid = (sampled != -1) & (sampled < vocab_size) & (discard_request_mask == 0).unsqueeze(1)
    sampled_token_ids.masked_fill_(~is_valid, -1)
    count = torch.minimum(is_valid.sum(1, keepdim=True), (most - lengths).clamp_min(0))
    last = sampled.gather(1, (count - 1).clamp_min(0).expand(-1, 1)) if sampled.size(1) else lengths.to(sampled.dtype)
    following = torch.where(count > 0, last, token_ids.gather(1, (lengths - 1).clamp_min(0)))

    steps = places - lengths
    is_new = (steps >= 0) & (steps < count)
    if sampled.size(1):
        token_ids.copy_(torch.where(is_new, sampled.gather(1, steps.clamp(0, sampled.size(1) - 1)), token_ids))

    total = lengths + count
    match = torch.full_like(total, -1)  # the place behind the earlier n-gram
    for n in range(min_n, max_n + 1):
        suffix = token_ids.gather(1, (total - n + places[:n]).clamp(0, most - 1))
        is_same = (token_ids.unfold(1, n, 1) == suffix.unsqueeze(1)).all(2) if n <= most else total < 0
        is_same = is_same & (places[: is_same.size(1)] < total - n)
        first = torch.where(is_same, places[: is_same.size(1)], most).amin(1, keepdim=True)
        match = torch.where((match < 0) & (first < most) & (count > 0), first + n, match)
    drafted = match + torch.arange(k, device=places.device)
    tokens = token_ids.gather(1, drafted.clamp(0, most - 1))
    drafts = torch.where((match >= 0) & (drafted < total), tokens, -1)
    valid = (drafts != -1).int().cumprod(1).sum(1)
    return token_ids, following.squeeze(1).int(), drafts.int(), valid.int()


@operator(
    "npu_copy_and_expand_eagle_inputs(Tensor target_token_ids, Tensor target_positions, Tensor next_token_ids,"
    " Tensor query_start_loc, Tensor query_end_loc, int padding_token_id, int parallel_drafting_token_id,"
    " int num_padding_slots_per_request, bool shift_input_ids, int total_draft_tokens)"
    " -> (Tensor out_input_ids, Tensor out_positions, Tensor out_is_rejected_token_mask,"
    " Tensor out_is_masked_token_mask, Tensor out_new_token_indices, Tensor out_hidden_state_mapping)"
)
def npu_copy_and_expand_eagle_inputs(
    target_token_ids: Tensor,
    target_positions: Tensor,
    next_token_ids: Tensor,
    query_start_loc: Tensor,
    query_end_loc: Tensor,
    padding_token_id: int,
    parallel_drafting_token_id: int,
    num_padding_slots_per_request: int,
    shift_input_ids: bool,
    total_draft_tokens: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The inputs of a drafting model: each request's accepted tokens, the next one, slots to draft, rejected ones."""
    slots = num_padding_slots_per_request
    first, stop, end = query_start_loc[:-1].long(), query_start_loc[1:].long(), query_end_loc.long()
    requests, inputs = first.size(0), target_token_ids.size(0)
    shift = int(shift_input_ids)
    valid = (end - first + 1 - shift).clamp_min(0)
    rejected = (stop - end - 1).clamp_min(0)
    begin = first + torch.arange(requests, device=first.device) * (slots - shift)

    # Each place of the result belongs to the last request that begins at or before it.
    places = torch.arange(total_draft_tokens, device=first.device)
    request = ((places.unsqueeze(1) >= begin).sum(1) - 1).clamp_min(0)
    step, accepted = places - begin[request], valid[request]
    is_accepted, is_next = (step >= 0) & (step < accepted), step == accepted
    is_draft = (step > accepted) & (step < accepted + slots)
    is_rejected = (step >= accepted + slots) & (step < accepted + slots + rejected[request])
    most = inputs - 1 if shift_input_ids else stop[request] - 1
    tokens = target_token_ids[(first[request] + shift + step).clamp(max=most).clamp(0, inputs - 1)]
    nothing = torch.zeros_like(tokens)
    ids = torch.where(is_accepted, tokens, nothing)
    ids = torch.where(is_next, next_token_ids[request], ids)
    ids = torch.where(is_draft, parallel_drafting_token_id, ids)
    ids = torch.where(is_rejected, padding_token_id, ids)
    positions = torch.where(is_accepted | is_next | is_draft, target_positions[first[request]] + step, 0)
    new = (begin + valid).unsqueeze(1) + torch.arange(slots, device=first.device)
    mapping = torch.zeros(inputs, dtype=torch.int32, device=first.device)
    if shift_input_ids:
        order = torch.arange(inputs, device=first.device)
        owner = ((order.unsqueeze(1) >= first).sum(1) - 1).clamp_min(0)
        mapping = torch.where(order < stop[owner], begin[owner] + order - first[owner], 0)
    return (
        ids.int(),
        positions.int(),
        is_rejected.to(torch.int8),
        is_draft.to(torch.int8),
        new.flatten().int(),
        mapping.int(),
    )
