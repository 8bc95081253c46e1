// Attention of one query for each sequence, over the keys of all tokens so far.

#include "cann/rows/attention/inference.h"
#include "cann/rows/checks.h"

namespace aclnn_host::attention_incremental_rows {

namespace {

constexpr std::string_view kLayouts = "BSH BSND BNSD";

void incre_attention(InferenceArguments& arguments, const std::optional<at::Tensor>& scale,
                     const std::optional<at::Tensor>& offset, Output& out) {
  const at::Tensor& query = arguments.query;
  EXPECT(query.is_floating_point(), "query has dtype ", dtype_text(query.scalar_type()),
         ", expected FLOAT16, BFLOAT16 or FLOAT");
  const int64_t dimension = arguments.layout == "BNSD" ? 2 : 1;
  EXPECT(query.dim() < 3 || query.size(dimension) == 1, "query has shape ", query.sizes(),
         ", expected one query for each sequence");
  split_antiquant(arguments, scale, offset, 0);
  infer_attention(arguments, out, nullptr);
}

}  // namespace

// A shift is a reserved argument of the first two versions, which ignore it.
ACLNN(IncreFlashAttention, (In, query), (Ins, key), (Ins, value),
      (Unused<Optional<In>>, pseShift, "reserved"), (Optional<In>, attenMask),
      (Optional<Ints>, actualSeqLengths), (int64_t, numHeads), (double, scaleValue),
      (char*, inputLayout), (int64_t, numKeyValueHeads), (Out, attentionOut)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .mask = attenMask,
                               .key_lengths = lengths_of(actualSeqLengths),
                               .key_lengths_name = "actualSeqLengths",
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .single_query_sees_all = true};
  incre_attention(arguments, std::nullopt, std::nullopt, attentionOut);
}
ACLNN(IncreFlashAttentionV2, (In, query), (Ins, key), (Ins, value),
      (Unused<Optional<In>>, pseShift, "reserved"), (Optional<In>, attenMask),
      (Optional<Ints>, actualSeqLengths), (Optional<In>, dequantScale1),
      (Optional<In>, quantScale1), (Optional<In>, dequantScale2), (Optional<In>, quantScale2),
      (Optional<In>, quantOffset2), (int64_t, numHeads), (double, scaleValue), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (Out, attentionOut)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .mask = attenMask,
                               .key_lengths = lengths_of(actualSeqLengths),
                               .key_lengths_name = "actualSeqLengths",
                               .dequant_scale1 = dequantScale1,
                               .quant_scale1 = quantScale1,
                               .dequant_scale2 = dequantScale2,
                               .quant_scale2 = quantScale2,
                               .quant_offset2 = quantOffset2,
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .single_query_sees_all = true};
  incre_attention(arguments, std::nullopt, std::nullopt, attentionOut);
}
ACLNN(IncreFlashAttentionV3, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
      (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths), (Optional<In>, dequantScale1),
      (Optional<In>, quantScale1), (Optional<In>, dequantScale2), (Optional<In>, quantScale2),
      (Optional<In>, quantOffset2), (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset),
      (Optional<In>, blocktable), (int64_t, numHeads), (double, scaleValue), (char*, inputLayout),
      (int64_t, numKeyValueHeads), (int64_t, blockSize), (int64_t, innerPrecise),
      (Out, attentionOut)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .shift = pseShift,
                               .mask = attenMask,
                               .key_lengths = lengths_of(actualSeqLengths),
                               .key_lengths_name = "actualSeqLengths",
                               .dequant_scale1 = dequantScale1,
                               .quant_scale1 = quantScale1,
                               .dequant_scale2 = dequantScale2,
                               .quant_scale2 = quantScale2,
                               .quant_offset2 = quantOffset2,
                               .block_table = blocktable,
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .inner_precise = innerPrecise,
                               .block_size = blockSize,
                               .single_query_sees_all = true};
  incre_attention(arguments, antiquantScale, antiquantOffset, attentionOut);
}
ACLNN(IncreFlashAttentionV4, (In, query), (Ins, key), (Ins, value), (Optional<In>, pseShift),
      (Optional<In>, attenMask), (Optional<Ints>, actualSeqLengths), (Optional<In>, dequantScale1),
      (Optional<In>, quantScale1), (Optional<In>, dequantScale2), (Optional<In>, quantScale2),
      (Optional<In>, quantOffset2), (Optional<In>, antiquantScale), (Optional<In>, antiquantOffset),
      (Optional<In>, blocktable), (Optional<In>, kvPaddingSize), (int64_t, numHeads),
      (double, scaleValue), (char*, inputLayout), (int64_t, numKeyValueHeads), (int64_t, blockSize),
      (int64_t, innerPrecise), (Out, attentionOut)) {
  InferenceArguments arguments{.query = query,
                               .key = key,
                               .value = value,
                               .shift = pseShift,
                               .mask = attenMask,
                               .key_lengths = lengths_of(actualSeqLengths),
                               .key_lengths_name = "actualSeqLengths",
                               .dequant_scale1 = dequantScale1,
                               .quant_scale1 = quantScale1,
                               .dequant_scale2 = dequantScale2,
                               .quant_scale2 = quantScale2,
                               .quant_offset2 = quantOffset2,
                               .block_table = blocktable,
                               .key_padding = kvPaddingSize,
                               .heads = numHeads,
                               .key_heads = numKeyValueHeads,
                               .scale = scaleValue,
                               .layout = inputLayout,
                               .layouts = kLayouts,
                               .inner_precise = innerPrecise,
                               .block_size = blockSize,
                               .single_query_sees_all = true};
  incre_attention(arguments, antiquantScale, antiquantOffset, attentionOut);
}

}  // namespace aclnn_host::attention_incremental_rows
