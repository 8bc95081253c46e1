#pragma once

#include "cann/rows/row.h"

// The prolog of multi-head latent attention. From each token it computes the queries of all heads
// and the key, which goes to two caches; each has a rotary part and a part without position. INT8
// weights and tokens have scales; INT8 caches receive quantised values.
namespace aclnn_host {

enum class Weights { kFractalNz, kAny };

struct MlaProlog {
  at::Tensor x;
  StoredTensor weight_dq;
  StoredTensor weight_uq_qr;
  at::Tensor weight_uk;
  StoredTensor weight_dkv_kr;
  at::Tensor gamma_cq;
  at::Tensor gamma_ckv;
  at::Tensor sine;
  at::Tensor cosine;
  std::optional<at::Tensor> cache_index = {};
  std::optional<at::Tensor> dequant_x;
  std::optional<at::Tensor> dequant_dq;
  std::optional<at::Tensor> dequant_uq_qr;
  std::optional<at::Tensor> dequant_dkv_kr;
  std::optional<at::Tensor> quant_ckv;
  std::optional<at::Tensor> quant_ckr;
  std::optional<at::Tensor> smooth_cq;
  double epsilon_cq;
  double epsilon_ckv;
  std::string cache_mode;
  Weights weights = Weights::kFractalNz;
  double scale_cq = 1;
  double scale_ckv = 1;
  bool has_one_scale = false;  // a quantised cache has one scale and not one for each element
};

struct MlaOutputs {
  Output& key_cache;
  Output& rope_cache;
  Output& query;
  Output& query_rope;
  OptionalOutput* query_scale = nullptr;
};

void mla_prolog(const MlaProlog& arguments, const MlaOutputs& outputs);

}  // namespace aclnn_host
