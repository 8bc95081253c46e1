#pragma once

#include <array>
#include <tuple>

#include "cann/rows/row.h"

// The gradients that outputMask requests.
namespace aclnn_host {

// outputMask, whose requested outputs must not be null.
inline std::array<bool, 3> checked_mask(
    const std::vector<bool>& mask,
    const std::array<std::pair<const char*, const OptionalOutput*>, 3>& outputs) {
  EXPECT(mask.size() == 3, "outputMask has ", mask.size(), " values, expected 3");
  constexpr const char* kElements[] = {"outputMask[0]", "outputMask[1]", "outputMask[2]"};
  for (size_t i = 0; i < 3; ++i) {
    require_asked(outputs[i].first, *outputs[i].second, kElements[i], mask[i]);
  }
  return {mask[0], mask[1], mask[2]};
}

// Writes the gradients that were computed.
inline void write_gradients(const std::tuple<at::Tensor, at::Tensor, at::Tensor>& gradients,
                            OptionalOutput& grad_input, OptionalOutput& grad_weight,
                            OptionalOutput& grad_bias) {
  if (std::get<0>(gradients).defined()) grad_input = std::get<0>(gradients);
  if (std::get<1>(gradients).defined()) grad_weight = std::get<1>(gradients);
  if (std::get<2>(gradients).defined()) grad_bias = std::get<2>(gradients);
}

}  // namespace aclnn_host
