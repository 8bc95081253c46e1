#include "cann/rows/engine/rehearsal.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include <c10/util/Exception.h>

#include "cann/rows/engine/accepted.h"
#include "cann/rows/engine/reasons.h"
#include "cann/rows/engine/refusal.h"
#include "cann/rows/engine/without_python.h"
#include "host_cann/arguments/one_thread.h"

namespace aclnn_host {
namespace {

thread_local bool rehearsed = false;

// ATen reports a failed allocation by this text only.
void throw_if_out_of_memory(const std::exception& error) {
  if (words_of(error).starts_with("[enforce fail at alloc_cpu")) {
    throw std::bad_alloc();
  }
}

class AtenCheck {
 public:
  AtenCheck(RowFunction row, const Call& call, const std::vector<Argument>& tensors)
      : row_(row), call_(call), tensors_(tensors) {}

  std::string refusal() const {
    using enum Aspect;
    std::string of_shapes = fingerprint(row_, call_, kShapes);
    if (was_accepted(of_shapes)) return "";
    const std::optional<std::string> refusal = refusal_of_shapes();
    if (refusal && !refusal->empty()) return *refusal;
    // Dtypes that were accepted before are not rehearsed again, if ATen has accepted the shapes.
    std::string of_dtypes = refusal ? fingerprint(row_, call_, kDtypes) : std::string();
    if (of_dtypes.empty() || !was_accepted(of_dtypes)) {
      const std::string text = is_large() ? rehearse_small() : rehearse();
      if (!text.empty()) return text;
      if (!of_dtypes.empty()) note_accepted(std::move(of_dtypes));
    }
    // A rehearsal on small tensors shows nothing about the shapes, but would show it again.
    note_accepted(std::move(of_shapes));
    return "";
  }

 private:
  // A rehearsal takes the time and the memory of the call itself.
  bool is_large() const {
    constexpr int64_t kMostElements = 4 << 20;
    int64_t sum = 0;
    for (const TensorView& view : call_.views) {
      const int64_t elements = element_count(view.shape).value_or(kMostElements);
      sum += std::min(std::max(elements, span_of(view)), kMostElements);
    }
    return sum >= kMostElements;
  }

  // Runs the row on tensors without memory. Returns ATen's refusal, the empty text if it accepts
  // the call, and nothing if it cannot tell.
  std::optional<std::string> refusal_of_shapes() const {
    try {
      const AtenScope scope;
      const WithoutPython without_python;
      call_.run(row_, without_memory, /*writes=*/false);
      return "";
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const NullArgument&) {
      throw;
    } catch (const c10::NotImplementedError&) {
      return std::nullopt;
    } catch (const std::exception& error) {
      throw_if_out_of_memory(error);
      if (needs_python(error)) return std::nullopt;
      return reason_of(error, misfit_text());
    }
  }

  // Runs the row on scratch memory that is all zeros, then on ones. Returns ATen's refusal; empty
  // if it accepts either, because it may refuse the other for its values. If ATen lacks a kernel,
  // it refuses both, unless there is nothing to compute, as with a mask of zeros.
  std::string rehearse() const {
    const Verdict on_zeros = rehearse_on(zeros);
    if (on_zeros.lacks_kernel) return on_zeros.text;
    const Verdict on_ones = rehearse_on(ones);
    return on_ones.lacks_kernel || !on_zeros.text.empty() ? on_ones.text : "";
  }
  // Rehearses a large call on small tensors. The sizes of these need not fit together, so only the
  // lack of a kernel counts as a refusal.
  std::string rehearse_small() const {
    const auto small_zeros = [](const TensorView& view) { return zeros(shrunken(view)); };
    const Verdict verdict = rehearse_on(small_zeros);
    return verdict.lacks_kernel ? verdict.text : "";
  }
  struct Verdict {
    std::string text;
    bool lacks_kernel = false;
  };
  template <class TensorOf>
  Verdict rehearse_on(TensorOf tensor_of) const {
    struct Rehearsal {
      Rehearsal() { rehearsed = true; }
      ~Rehearsal() { rehearsed = false; }
    } rehearsal;
    // This is the caller's thread. In a forked child, it would wait without end for the threads
    // that its parent computed with; a stream's worker is a thread of the child, and starts its
    // own.
    const OneThread alone;
    try {
      call_.run(row_, tensor_of, /*writes=*/false);
      return {};
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const NullArgument&) {
      throw;
    } catch (const c10::LinAlgError&) {
      return {};  // the values were refused
    } catch (const c10::NotImplementedError& error) {
      return {"the host CANN has no kernel for " + tensors_text(/*with_shapes=*/false) +
                  "; cast the tensors (" + words_of(error) + ")",
              true};
    } catch (const std::exception& error) {
      throw_if_out_of_memory(error);
      return {reason_of(error, misfit_text())};
    }
  }

  // The tensors and their dtypes, such as "self INT32, other INT32", with the first tensor of a
  // list; and their shapes.
  std::string tensors_text(bool with_shapes) const {
    std::string text;
    const char* last = nullptr;
    for (const Argument& argument : tensors_) {
      if (argument.name == last) continue;
      last = argument.name;
      if (!text.empty()) text += ", ";
      const TensorView& view = argument.tensor->view;
      text += std::string(argument.name) + " " + dtype_name(view.dtype);
      if (with_shapes) text += " " + shape_text(view.shape);
    }
    return text;
  }
  std::string misfit_text() const {
    return "the arguments do not fit together: " + tensors_text(/*with_shapes=*/true);
  }

  RowFunction row_;
  const Call& call_;
  const std::vector<Argument>& tensors_;
};

}  // namespace

bool is_rehearsed() noexcept {
  return rehearsed;
}

std::string refusal_of_aten(RowFunction row, const Call& call,
                            const std::vector<Argument>& tensors) {
  return AtenCheck(row, call, tensors).refusal();
}

}  // namespace aclnn_host
