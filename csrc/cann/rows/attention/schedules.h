#pragma once

#include <numeric>

#include "acl/acl_rt.h"
#include "cann/rows/attention/heads.h"
#include "cann/rows/integers.h"
#include "cann/rows/row.h"
#include "host_cann/kernels/sizes.h"

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
    EXPECT(!used_ || count_ == ends->size(0) - 1, used_name, " has ", count_.value_or(0),
           " elements, expected one less than ", ends_name, ", which has ", ends->size(0));
    count_of_ends_ = ends->size(0) - 1;
    if (!is_packed) return;
    ends_ = ends;
    count_ = count_of_ends_;
  }

  bool is_given() const { return used_.has_value(); }
  // The number of the lengths that tensors give.
  std::optional<int64_t> count() const { return count_; }
  // The number of sequences that tensors tell. Ends tell it also if their values do not count.
  std::optional<int64_t> sequences() const { return count_ ? count_ : count_of_ends_; }

  void expect_ends(const std::string& layout) const {
    EXPECT(layout != "TND" || ends_, ends_name_, " is null, expected a tensor as the layout is ",
           layout);
  }
  void expect_used(const std::string& layout) const {
    EXPECT(layout != "PA_BBND" || used_, used_name_,
           " is null, expected a tensor as the layout is ", layout);
  }

  void read() {
    if (ends_) {
      lengths_ = integers_in(*ends_);
      EXPECT(lengths_.front() == 0, ends_name_, " begins with ", lengths_.front(), ", expected 0");
      for (size_t i = lengths_.size() - 1; i > 0; --i) lengths_[i] -= lengths_[i - 1];
      lengths_.erase(lengths_.begin());
      check_lengths(ends_name_);
    }
    if (!used_) return;
    lengths_ = integers_in(*used_);
    check_lengths(used_name_);
  }
  // Call the functions below after read(), if there is a tensor.
  bool are_alike() const { return lengths_.empty(); }
  int64_t total(int64_t count) const {
    if (are_alike()) return count * length_;
    return std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
  }
  int64_t operator[](int64_t sequence) const {
    return lengths_.empty() ? length_ : lengths_[static_cast<size_t>(sequence)];
  }

 private:
  static void check(const char* name, const at::Tensor& tensor) {
    expect_dtype(name, tensor, at::kInt);
    expect_dims(name, tensor, 1);
  }
  void check_lengths(const char* name) const {
    for (const int64_t length : lengths_) {
      EXPECT(length >= 0, name, " has a sequence of ", length, " tokens, expected 0 or more");
    }
  }

  const char* ends_name_;
  const char* used_name_;
  int64_t length_;
  std::optional<at::Tensor> ends_;
  std::optional<at::Tensor> used_;
  std::optional<int64_t> count_;
  std::optional<int64_t> count_of_ends_;
  std::vector<int64_t> lengths_;
};

// Checks that a layout's lengths are given.
inline void check_lengths(const SequenceSizes& sizes, const std::string& layout, const char* used,
                          const char* most_name, int64_t most) {
  sizes.expect_ends(layout);
  sizes.expect_used(layout);
  EXPECT(layout != "BSND" || sizes.is_given() || most >= 0, most_name, " is ", most,
         ", expected 0 or more as ", used, " is null");
}

// Reads the tokens after the last key of each sequence; none if the tensor is not given.
inline std::vector<int64_t> rests_in(const char* name, const std::optional<at::Tensor>& rests,
                                     int64_t ratio) {
  if (!is_filled(rests)) return {};
  const std::vector<int64_t> numbers = integers_in(*rests);
  for (const int64_t rest : numbers) expect_rest(name, rest, ratio);
  return numbers;
}

inline int64_t cores_of_device() {
  int64_t cores = 0;
  EXPECT(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &cores) == ACL_SUCCESS && cores > 0,
         "the device has ", cores,
         " matrix units (ACL_DEV_ATTR_CUBE_CORE_NUM), expected 1 or more");
  return std::min(cores, kMostCores);
}

// Refuses more sequences or queries than a schedule is computed for.
inline void expect_most(const char* what, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 24;
  EXPECT(count <= kMost, "there are ", count, " ", what, ", expected up to ", kMost);
}

// Writes the first elements of metadata and leaves the others.
inline void write_first(Output& metadata, const std::vector<int64_t>& numbers) {
  const at::Tensor before = metadata;
  metadata = at::cat({at::tensor(numbers, at::kLong).to(at::kInt),
                      before.slice(0, static_cast<int64_t>(numbers.size()))});
}

// Numbers that give each core an equal share of the queries: how many queries there are; how many
// of them the first cores compute, and how many the others; how many others there are; and how
// many cores compute any.
inline std::vector<int64_t> equal_shares(int64_t queries) {
  EXPECT(queries <= INT32_MAX, "there are ", queries, " queries, expected up to ", INT32_MAX);
  const int64_t cores = cores_of_device(), each = divide_up(queries, cores);
  return {queries, each, each - 1, each * cores - queries, std::min(queries, cores)};
}

}  // namespace aclnn_host
