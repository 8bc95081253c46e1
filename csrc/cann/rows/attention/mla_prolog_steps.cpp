// The steps of a prolog of multi-head latent attention, all in FLOAT.
#include "cann/rows/attention/mla_prolog.h"

#include "cann/rows/attention/fractal_weights.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/attention/inference.h"
#include "cann/rows/attention/updated_cache.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

void expect_given(const char* name, const std::optional<at::Tensor>& tensor, bool expected,
                  at::IntArrayRef shape) {
  EXPECT(given(tensor) == expected, name, " is ", given(tensor) ? "given" : "null", ", expected ",
         expected ? "a tensor" : "null", " for these dtypes");
  if (expected) expect_float(name, *tensor, shape);
}

// Quantises each row to INT8. Returns the rows and their scales.
std::pair<at::Tensor, at::Tensor> quantised_rows(const at::Tensor& rows) {
  const at::Tensor step = at::amax(rows.abs(), -1, /*keepdim=*/true) / 127;
  return {rounded_to_int8(rows / step), step};
}

class Prolog {
 public:
  Prolog(const MlaProlog& arguments, const MlaOutputs& outputs)
      : a_(arguments),
        out_(outputs),
        dq_(matrix_of("weightDq", a_.weight_dq)),
        uq_qr_(matrix_of("weightUqQr", a_.weight_uq_qr)),
        dkv_kr_(matrix_of("weightDkvKr", a_.weight_dkv_kr)) {
    expect_dims("tokenX", a_.x, 2, 3);
    expect_dims("weightUk", a_.weight_uk, 3);
    expect_dims("ropeSin", a_.sine, a_.x.dim());
    tokens_ = a_.x.flatten(0, -2);
    heads_ = a_.weight_uk.size(0);
    head_size_ = a_.weight_uk.size(1);
    key_size_ = a_.weight_uk.size(2);
    rope_size_ = a_.sine.size(-1);
    EXPECT(rope_size_ % 2 == 0, "ropeSin has shape ", a_.sine.sizes(),
           ", expected an even last dimension");
    check_shapes();
    check_dtypes();
  }

  void run() {
    if (tokens_.size(0) == 0) return;
    const at::Tensor sine = a_.sine.flatten(0, -2).to(at::kFloat);
    const at::Tensor cosine = a_.cosine.flatten(0, -2).to(at::kFloat);
    write_query(sine.unsqueeze(1), cosine.unsqueeze(1));
    write_caches(sine, cosine);
  }

 private:
  at::Tensor matrix_of(const char* name, const StoredTensor& weight) const {
    return weight_matrix(name, weight, a_.weights == Weights::kFractalNz);
  }

  void check_shapes() const {
    const int64_t size = a_.x.size(-1);
    const int64_t low_rank = dq_.size(1);
    const at::IntArrayRef tokens = a_.x.sizes().slice(0, static_cast<size_t>(a_.x.dim()) - 1);
    const auto by_token = [&](std::initializer_list<int64_t> rest) {
      std::vector<int64_t> shape = tokens.vec();
      shape.insert(shape.end(), rest);
      return shape;
    };
    expect_shape("weightDq", dq_, {size, low_rank});
    expect_shape("weightUqQr", uq_qr_, {low_rank, heads_ * (head_size_ + rope_size_)});
    expect_shape("weightDkvKr", dkv_kr_, {size, key_size_ + rope_size_});
    expect_shape("rmsnormGammaCq", a_.gamma_cq, {low_rank});
    expect_shape("rmsnormGammaCkv", a_.gamma_ckv, {key_size_});
    expect_shape("ropeSin", a_.sine, by_token({rope_size_}));
    expect_shape("ropeCos", a_.cosine, by_token({rope_size_}));
    expect_shape(out_.query.name(), out_.query, by_token({heads_, key_size_}));
    expect_shape(out_.query_rope.name(), out_.query_rope, by_token({heads_, rope_size_}));
    EXPECT(a_.cache_index, "cacheIndex is null, expected the positions of the tokens in caches");
    expect_shape("cacheIndex", *a_.cache_index, by_token({}));
    expect_dtype("cacheIndex", *a_.cache_index, at::kLong);
    expect_dims("kvCacheRef", out_.key_cache, 4);
    const int64_t blocks = out_.key_cache->size(0);
    const int64_t block_size = out_.key_cache->size(1);
    expect_shape("kvCacheRef", out_.key_cache, {blocks, block_size, 1, key_size_});
    expect_shape("krCacheRef", out_.rope_cache, {blocks, block_size, 1, rope_size_});
  }

  bool quantises_all() const { return a_.x.scalar_type() == at::kChar; }
  bool quantises_cq() const { return uq_qr_.scalar_type() == at::kChar; }
  bool quantises_cache() const { return out_.key_cache->scalar_type() == at::kChar; }
  // An INT8 query requires INT8 tokens and an INT8 cache.
  bool quantises_query() const { return quantises_all() && quantises_cache(); }

  void check_dtypes() const {
    const at::Tensor& gamma = a_.gamma_cq;
    const at::ScalarType type = gamma.scalar_type();
    expect_dtype("rmsnormGammaCq", gamma, {at::kBFloat16, at::kHalf, at::kFloat});
    const auto expect = [&](const char* name, const at::Tensor& tensor, bool is_quantised) {
      expect_dtype(name, tensor, is_quantised ? at::kChar : type);
    };
    expect("tokenX", a_.x, quantises_all());
    expect("weightDq", dq_, quantises_all());
    expect("weightDkvKr", dkv_kr_, quantises_all());
    expect("weightUqQr", uq_qr_, quantises_all() || quantises_cq());
    expect_dtype("weightUk", a_.weight_uk, type);
    expect_dtype("rmsnormGammaCkv", a_.gamma_ckv, type);
    expect_dtype("ropeSin", a_.sine, type);
    expect_dtype("ropeCos", a_.cosine, type);
    expect_dtype("queryRopeOut", out_.query_rope, type);
    expect("kvCacheRef", out_.key_cache, quantises_cq() && quantises_cache());
    expect("krCacheRef", out_.rope_cache, quantises_cache() && !quantises_all());
    expect("queryOut", out_.query, quantises_query());
    const int64_t count = tokens_.size(0);
    const int64_t low_rank = dq_.size(1);
    expect_given("dequantScaleXOptional", a_.dequant_x, quantises_all() && count > 0, {count, 1});
    expect_given("dequantScaleWDqOptional", a_.dequant_dq, quantises_all(), {1, low_rank});
    expect_given("dequantScaleWUqQrOptional", a_.dequant_uq_qr, quantises_cq(),
                 {1, uq_qr_.size(1)});
    expect_given("dequantScaleWDkvKrOptional", a_.dequant_dkv_kr, quantises_all(),
                 {1, dkv_kr_.size(1)});
    expect_given("quantScaleCkvOptional", a_.quant_ckv, quantises_cache(),
                 a_.has_one_scale ? std::vector<int64_t>{1} : std::vector<int64_t>{1, key_size_});
    expect_given("quantScaleCkrOptional", a_.quant_ckr, quantises_cache() && !quantises_all(),
                 {1, rope_size_});
    expect_given("smoothScalesCqOptional", a_.smooth_cq, quantises_cq() && given(a_.smooth_cq),
                 {1, low_rank});
  }

  // The tokens times a matrix; the columns may have scales.
  at::Tensor projected(const at::Tensor& matrix, const std::optional<at::Tensor>& scale) const {
    if (!quantises_all()) return at::matmul(tokens_.to(at::kFloat), matrix.to(at::kFloat));
    // DOUBLE sums many products of integers exactly.
    const at::Tensor result = at::matmul(tokens_.to(at::kDouble), matrix.to(at::kDouble));
    return (result * *a_.dequant_x * *scale).to(at::kFloat);
  }

  void write_query(const at::Tensor& sine, const at::Tensor& cosine) const {
    at::Tensor c = rms_normalized(projected(dq_, a_.dequant_dq), a_.gamma_cq, a_.epsilon_cq);
    c = c * a_.scale_cq;
    at::Tensor q;
    if (quantises_cq()) {
      if (given(a_.smooth_cq)) c = c * *a_.smooth_cq;
      const auto [integers, step] = quantised_rows(c);
      q = at::matmul(integers.to(at::kDouble), uq_qr_.to(at::kDouble)).to(at::kFloat) * step *
          *a_.dequant_uq_qr;
    } else {
      q = at::matmul(c, uq_qr_.to(at::kFloat));
    }
    q = q.unflatten(1, {heads_, head_size_ + rope_size_});
    at::Tensor rope = rotated_pairs(q.narrow(2, head_size_, rope_size_), cosine, sine);
    at::Tensor query =
        at::matmul(q.narrow(2, 0, head_size_).transpose(0, 1), a_.weight_uk.to(at::kFloat))
            .transpose(0, 1);
    if (quantises_query()) {
      const auto [integers, step] = quantised_rows(query);
      query = integers.to(at::kChar);
      // A device gives both parts of the query the same scale: the query's scale times the cache's.
      rope = rope * (a_.quant_ckv->flatten().narrow(0, 0, 1) / step);
      EXPECT(out_.query_scale != nullptr && *out_.query_scale,
             "dequantScaleQNopeOut is null, expected a tensor for a query of INT8");
      expect_dtype("dequantScaleQNopeOut", **out_.query_scale, at::kFloat);
      *out_.query_scale = step;
    }
    out_.query = query.reshape(out_.query->sizes());
    out_.query_rope = rope.reshape(out_.query_rope->sizes());
  }

  void write_caches(const at::Tensor& sine, const at::Tensor& cosine) const {
    const at::Tensor both = projected(dkv_kr_, a_.dequant_dkv_kr);
    at::Tensor key = rms_normalized(both.narrow(1, 0, key_size_), a_.gamma_ckv, a_.epsilon_ckv);
    key = key * a_.scale_ckv;
    at::Tensor rope = rotated_pairs(both.narrow(1, key_size_, rope_size_), cosine, sine);
    if (quantises_cache()) {
      const at::Tensor& scale = *a_.quant_ckv;
      key = rounded_to_int8(key * (quantises_all() ? scale.flatten().narrow(0, 0, 1) : scale));
      if (!quantises_all()) rope = rounded_to_int8(rope * *a_.quant_ckr);
    }
    write_cache(out_.key_cache, key);
    write_cache(out_.rope_cache, rope);
  }

  // Writes rows to the positions in the index; a row with a negative index is not written.
  void write_cache(Output& cache, const at::Tensor& rows) const {
    expect_text("cacheModeOptional", a_.cache_mode, {"", "PA_BSND", "PA_NZ"});
    const bool is_nz = a_.cache_mode == "PA_NZ";
    if (cache->numel() == 0) return;
    const int64_t blocks = cache->size(0);
    const int64_t block_size = cache->size(1);
    const int64_t size = cache->size(3);
    const int64_t width = 32 / cache->element_size();  // the width of a block of columns
    EXPECT(!is_nz || size % width == 0, cache.name(), " has shape ", cache->sizes(),
           ", expected a last dimension of a multiple of ", width, " for PA_NZ");
    const at::Tensor& index = *a_.cache_index;
    if (has_values(index)) {
      check_bounds("cacheIndex", index.masked_select(index >= 0), blocks * block_size);
    }
    std::vector<int64_t> parts{rows.size(0), size};
    if (is_nz) parts = {rows.size(0), size / width, width};
    cache = updated_blocks(cache, index.flatten(), rows.reshape(parts), [&](const at::Tensor& all) {
      if (!is_nz) return all.view({blocks, block_size, size});
      return all.view({blocks, size / width, block_size, width}).transpose(1, 2);
    });
  }

  const MlaProlog& a_;
  const MlaOutputs& out_;
  at::Tensor dq_;
  at::Tensor uq_qr_;
  at::Tensor dkv_kr_;
  at::Tensor tokens_;
  int64_t heads_;
  int64_t head_size_;
  int64_t key_size_;
  int64_t rope_size_;
};

}  // namespace

void mla_prolog(const MlaProlog& arguments, const MlaOutputs& outputs) {
  Prolog(arguments, outputs).run();
}

}  // namespace aclnn_host
