"""The operators that are not computed, with the reasons."""

from __future__ import annotations

from .definitions import refuse

refuse(
    "it communicates between devices within one kernel; the layers beside it do the same in steps",
    "dispatch_gmm_combine_decode(Tensor x, Tensor expert_ids, Tensor[] gmm1_permuted_weight,"
    " Tensor[] gmm1_permuted_weight_scale, Tensor[] gmm2_weight, Tensor[] gmm2_weight_scale, Tensor expert_scales,"
    " Tensor? expert_smooth_scales=None, Tensor? x_active_mask=None, str group_ep='', int ep_rank_size=0,"
    " int ep_rank_id=0, int moe_expert_num=0, int shared_expert_num=1, int shared_expert_rank_num=0, int quant_mode=0,"
    " int global_bs=0) -> (Tensor output, Tensor expert_token_nums)",
    "dispatch_ffn_combine(Tensor x, Tensor[] weight1, Tensor[] weight2, Tensor expert_idx, Tensor[] scale1,"
    " Tensor[] scale2, Tensor[] bias1, Tensor[] bias2, Tensor probs, str group, int max_output_size, Tensor! out,"
    " Tensor! expert_token_nums, Tensor? x_active_mask=None, float swiglu_limit=1000000.0)"
    " -> (Tensor out, Tensor expert_token_nums)",
    "matmul_allreduce_add_rmsnorm(Tensor x1, Tensor x2, Tensor residual, Tensor gamma, str groupTp, int tpRankSize,"
    " int tpRankId, float epsilon, bool isTransB, bool isGatherAddOut) -> (Tensor output, Tensor add_out)",
)
refuse(
    "it prints while a stream runs; print the tensor after torch.npu.synchronize()",
    "device_print(str msg) -> ()",
    "device_print_tensor(Tensor tensor) -> ()",
)
refuse(
    "torch_npu tells the sizes of a tensor's memory to C++ only; torch_npu.get_npu_format has the format",
    "get_npu_storage_shape(Tensor tensor) -> int[]",
)
refuse(
    "its weights have a layout of its kernel's own; VLLM_ASCEND_ENABLE_MLAPO=0 has the same layer without it",
    "mla_preprocess(Tensor hiddenState, Tensor wdqkv, Tensor? descale0, Tensor gamma1, Tensor? beta1, Tensor wuq,"
    " Tensor? descale1, Tensor gamma2, Tensor cos, Tensor sin, Tensor wuk, Tensor kv_cache, Tensor kv_cache_rope,"
    " Tensor slotmapping, Tensor? quant_scale0, Tensor? quant_offset0, Tensor? bias0, Tensor? quant_scale1,"
    " Tensor? quant_offset1, Tensor? bias1, Tensor? ctkv_scale, Tensor? q_nope_scale, str? cache_mode, str? quant_mode,"
    " bool? enable_inner_out, Tensor! q_out0, Tensor! kv_cache_out0, Tensor! q_out1, Tensor! kv_cache_out1,"
    " Tensor! inner_out) -> (Tensor q_out0, Tensor kv_cache_out0, Tensor q_out1, Tensor kv_cache_out1,"
    " Tensor inner_out)",
)
refuse(
    "no document or reference has its rule",
    "moe_grouped_matmul(Tensor x, Tensor weight, Tensor group_list, int split_item, int group_type,"
    " int group_list_type) -> Tensor[]",
)
refuse(
    "its scores depend on how its kernel rounds to four bits",
    "npu_hamming_dist_top_k(Tensor q, Tensor k_comp, Tensor k_comp_rope, Tensor k, Tensor seq_len,"
    " Tensor? chunk_size=None, int? max_seq_len=None, int? sink=None, int? recent=None, int? support_offload=None,"
    " Tensor? key_block_table=None, Tensor? mask=None, Tensor? indices=None) -> Tensor",
)
refuse(
    "INT4 products of the second version are not computed",
    "grouped_matmul_swiglu_quant_v2(Tensor x, Tensor[] weight, Tensor[] weight_scale, Tensor x_scale,"
    " Tensor group_list, Tensor? smooth_scale=None, Tensor[]? weight_assist_matrix=None, Tensor? bias=None,"
    " int? dequant_mode=0, int? dequant_dtype=0, int? quant_mode=0, int? quant_dtype=0, bool transpose_weight=False,"
    " int group_list_type=0, int[2] tuning_config=[], float swiglu_limit=0.0)"
    " -> (Tensor output, Tensor output_scale)",
)
refuse(
    "the compressed keys of DeepSeek-V4 are not computed",
    "compressor(Tensor x, Tensor wkv, Tensor wgate, Tensor(a!) state_cache, Tensor ape, Tensor norm_weight,"
    " Tensor rope_sin, Tensor rope_cos, Tensor? state_block_table, Tensor? cu_seqlens, Tensor? seqused,"
    " Tensor? start_pos, int rope_head_dim, int cmp_ratio, int coff, float norm_eps, int rotary_mode, int cache_mode)"
    " -> Tensor",
    "npu_vllm_quant_lightning_indexer(Tensor query, Tensor key, Tensor weights, Tensor query_dequant_scale,"
    " Tensor key_dequant_scale, int query_quant_mode=0, int key_quant_mode=0,"
    " Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None, Tensor? block_table=None,"
    " Tensor? metadata=None, str layout_query='BSND', str layout_key='BSND', int sparse_count=2048,"
    " int sparse_mode=3, int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807, int cmp_ratio=1,"
    " bool return_value=False) -> (Tensor sparse_indices, Tensor sparse_values)",
    "npu_vllm_quant_lightning_indexer_metadata(int num_heads_q, int num_heads_k, int head_dim, int query_quant_mode,"
    " int key_quant_mode, Tensor? actual_seq_lengths_query=None, Tensor? actual_seq_lengths_key=None,"
    " int batch_size=0, int max_seqlen_q=0, int max_seqlen_k=0, str layout_query='BSND', str layout_key='BSND',"
    " int sparse_count=2048, int sparse_mode=3, int pre_tokens=9223372036854775807,"
    " int next_tokens=9223372036854775807, int cmp_ratio=1, str device='npu') -> (Tensor metadata)",
    "npu_sparse_attn_sharedkv(Tensor q, *, Tensor? ori_kv=None, Tensor? cmp_kv=None,"
    " Tensor? ori_sparse_indices=None, Tensor? cmp_sparse_indices=None, Tensor? ori_block_table=None,"
    " Tensor? cmp_block_table=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_ori_kv=None,"
    " Tensor? cu_seqlens_cmp_kv=None, Tensor? seqused_q=None, Tensor? seqused_kv=None, Tensor? sinks=None,"
    " Tensor? metadata=None, float softmax_scale=0, int cmp_ratio=0, int ori_mask_mode=4, int cmp_mask_mode=3,"
    " int ori_win_left=128, int ori_win_right=0, str layout_q='BSND', str layout_kv='PA_ND',"
    " bool return_softmax_lse=False) -> (Tensor out, Tensor softmax_lse)",
    "npu_sparse_attn_sharedkv_metadata(int num_heads_q, int num_heads_kv, int head_dim, Tensor? cu_seqlens_q=None,"
    " Tensor? cu_seqlens_ori_kv=None, Tensor? cu_seqlens_cmp_kv=None, Tensor? seqused_q=None,"
    " Tensor? seqused_kv=None, int batch_size=0, int max_seqlen_q=0, int max_seqlen_kv=0, int ori_topk=0,"
    " int cmp_topk=0, int cmp_ratio=4, int ori_mask_mode=4, int cmp_mask_mode=3, int ori_win_left=128,"
    " int ori_win_right=0, str layout_q='BSND', str layout_kv='PA_ND', bool has_ori_kv=True, bool has_cmp_kv=True,"
    " str device='npu') -> (Tensor metadata)",
)
refuse(
    "its FLOAT8 caches are those of Ascend950, where vllm-ascend turns its own operators off",
    "npu_kv_quant_sparse_attn_sharedkv(Tensor q, int kv_quant_mode, Tensor? ori_kv=None, Tensor? cmp_kv=None,"
    " Tensor? ori_sparse_indices=None, Tensor? cmp_sparse_indices=None, Tensor? ori_block_table=None,"
    " Tensor? cmp_block_table=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_ori_kv=None,"
    " Tensor? cu_seqlens_cmp_kv=None, Tensor? seqused_q=None, Tensor? seqused_kv=None, Tensor? sinks=None,"
    " Tensor? metadata=None, int tile_size=0, int rope_head_dim=0, float softmax_scale=0.0, int cmp_ratio=0,"
    " int ori_mask_mode=4, int cmp_mask_mode=3, int ori_win_left=127, int ori_win_right=0, str layout_q='BSND',"
    " str layout_kv='PA_ND', bool return_softmax_lse=False) -> (Tensor out, Tensor softmax_lse)",
    "npu_kv_quant_sparse_attn_sharedkv_metadata(int num_heads_q, int num_heads_kv, int head_dim, int kv_quant_mode,"
    " Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_ori_kv=None, Tensor? cu_seqlens_cmp_kv=None,"
    " Tensor? seqused_q=None, Tensor? seqused_kv=None, int batch_size=0, int max_seqlen_q=0, int max_seqlen_kv=0,"
    " int ori_topk=0, int cmp_topk=0, int tile_size=0, int rope_head_dim=0, int cmp_ratio=-1, int ori_mask_mode=4,"
    " int cmp_mask_mode=3, int ori_win_left=127, int ori_win_right=0, str layout_q='BSND', str layout_kv='PA_ND',"
    " bool has_ori_kv=True, bool has_cmp_kv=True, str device='npu') -> Tensor",
    "npu_swiglu_group_quant(Tensor x, Tensor? topk_weight, Tensor? group_index, ScalarType dst_type=39,"
    " int quant_mode=1, int group_size=128, bool round_scale=False, bool ue8m0_scale=False,"
    " bool output_origin=False, int group_list_type=0, float clamp_value=0.0)"
    " -> (Tensor y, Tensor scale, Tensor y_origin)",
    "indexer_compress_epilog(Tensor(a!) indexer_compress_cache, Tensor(b!) indexer_compress_cache_scale, Tensor x,"
    " Tensor slot_mapping, int quant_mode=1, bool round_scale=True) -> ()",
    "indexer_compress_epilog_v2(Tensor(a!) indexer_compress_cache, Tensor x, Tensor slot_mapping, int layout=2) -> ()",
    "kv_compress_epilog(Tensor(a!) kv_compress_cache, Tensor x, Tensor slot_mapping, int quant_group_size,"
    " int quant_mode, bool round_scale_flag, int layout) -> ()",
    "npu_load_index_kv_cache(Tensor kv_cache, Tensor slot_mapping) -> (Tensor out, Tensor out_scale)",
)
