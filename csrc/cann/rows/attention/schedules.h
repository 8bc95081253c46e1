#pragma once

#include "acl/acl_rt.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"

// Shared by the functions that write schedules for the cores of a device: lengths of sequences.
namespace aclnn_host {

inline constexpr int64_t kScheduleSize = 1024;  // elements
inline constexpr int64_t kMostCores = 36;       // that it has room for

inline bool is_filled(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->numel() > 0;
}

// The lengths of queries or keys: those that are used, or the distances of the ends of packed
// sequences, or one length of all.
class SequenceSizes {
 public:
  SequenceSizes(const char* ends_name, const std::optional<at::Tensor>& ends, const char* used_name,
                const std::optional<at::Tensor>& used, bool is_packed, int64_t length)
      : ends_name_(ends_name), used_name_(used_name), length_(length) {
    if (is_filled(used)) {
      check(used_name, *used);
      used_ = used;
      count_ = used->size(0);
    }
    if (!is_filled(ends)) return;
    check(ends_name, *ends);
    if (!is_packed) return;
    ends_ = ends;
    EXPECT(!used_ || count_ == ends->size(0) - 1, used_name, " has ", count_.value_or(0),
           " elements, expected one less than ", ends_name, ", which has ", ends->size(0));
    count_ = ends->size(0) - 1;
  }

  bool is_given() const { return used_.has_value(); }
  bool has_ends() const { return ends_.has_value(); }
  std::optional<int64_t> count() const { return count_; }

  void read() {
    if (used_) {
      lengths_ = integers_in(*used_);
    } else if (ends_) {
      lengths_ = integers_in(*ends_);
      for (size_t i = lengths_.size() - 1; i > 0; --i) lengths_[i] -= lengths_[i - 1];
      lengths_.erase(lengths_.begin());
    }
    const char* const name = used_ ? used_name_ : ends_name_;
    for (const int64_t length : lengths_) {
      EXPECT(length >= 0, name, " has a sequence of ", length, " tokens, expected 0 or more");
    }
  }
  int64_t operator[](int64_t sequence) const {
    return lengths_.empty() ? length_ : lengths_[static_cast<size_t>(sequence)];
  }

 private:
  static void check(const char* name, const at::Tensor& tensor) {
    expect_dtype(name, tensor, at::kInt);
    expect_dims(name, tensor, 1);
  }

  const char* ends_name_;
  const char* used_name_;
  int64_t length_;
  std::optional<at::Tensor> ends_;
  std::optional<at::Tensor> used_;
  std::optional<int64_t> count_;
  std::vector<int64_t> lengths_;
};

// Checks that a layout's lengths are given.
inline void check_lengths(const SequenceSizes& sizes, const std::string& layout, const char* ends,
                          const char* used, const char* most_name, int64_t most) {
  EXPECT(layout != "TND" || sizes.has_ends(), ends, " is null, expected a tensor as the layout is ",
         layout);
  EXPECT(layout != "PA_BBND" || sizes.is_given(), used,
         " is null, expected a tensor as the layout is ", layout);
  EXPECT(layout != "BSND" || sizes.is_given() || most >= 0, most_name, " is ", most,
         ", expected 0 or more as ", used, " is null");
}

inline int64_t cores_of_device() {
  int64_t cores = 0;
  EXPECT(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &cores) == ACL_SUCCESS && cores > 0,
         "the device does not tell how many cores it has");
  return std::min(cores, kMostCores);
}

}  // namespace aclnn_host
