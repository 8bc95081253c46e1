#include "cann/rows/experts/grouped_lists.h"

#include <iterator>

#include "cann/rows/quantized/quantized_product.h"
#include "cann/rows/quantized/type_checks.h"
#include "cann/rows/row.h"

namespace aclnn_host {
namespace {

using Tensors = std::vector<at::Tensor>;

// A list of one tensor of shape {0} counts as empty.
Tensors given(const Tensors& list) {
  return list.size() == 1 && list[0].sizes() == at::IntArrayRef{0} ? Tensors() : list;
}

void expect_none(const char* name, const Tensors& list) {
  EXPECT(list.empty(), name, " has ", list.size(),
         " tensors, expected null for these dtypes of x and weight");
}
void expect_some(const char* name, const Tensors& list) {
  EXPECT(!list.empty(), name, " is null, expected tensors for these dtypes of x and weight");
}

void expect_dtypes(const char* name, const Tensors& list,
                   std::initializer_list<at::ScalarType> accepted) {
  for (const at::Tensor& each : list) {
    expect_dtype(name, each, accepted, " for these dtypes of x and weight");
  }
}

at::Tensor activated(const at::Tensor& values, int64_t type) {
  switch (type) {
    case 0: return values;
    case 1: return at::relu(values);
    case 2: return at::gelu(values, "tanh");
    case 4: return values * at::sigmoid(values * 1.702);
    default: return at::silu(values);  // 5
  }
}

// A part of an output, as an output.
Output part_of(const Output& out, const at::Tensor& part) {
  return Output(out.name(), part, out.is_written());
}

class Computation {
 public:
  Computation(const GroupedMatmul& call, const std::vector<Output>& out)
      : call_(call),
        out_(out),
        kind_(checked_kind()),
        x_(rows_of_x()),
        weight_("weight", call.weight, call.group_type == 0 && has_all_matrices(call.weight)) {
    for (Tensors* list : {&call_.bias, &call_.scale, &call_.offset, &call_.antiquant_scale,
                          &call_.antiquant_offset, &call_.per_token_scale}) {
      *list = given(*list);
    }
    check_types();
    check_activation();
  }

  void run() const {
    // Without a groupType, equal lengths select lists; otherwise the groups are rows.
    const size_t count = call_.weight.size();
    const int64_t type =
        call_.group_type.value_or(x_.size() == count && out_.size() == count ? -1 : 0);
    EXPECT(call_.list_type != kGroupPairs || (kind_ == GroupedKind::kInt8 && type == 0),
           "groupListType is 2, expected 0 or 1 unless x and weight are INT8 and groupType 0");
    switch (type) {
      case -1: return run_lists();
      case 0: return run_rows();
      case 2: return run_columns();
      default: EXPECT(false, "groupType is ", type, ", expected -1, 0 or 2");
    }
  }

 private:
  GroupedKind checked_kind() const {
    constexpr int64_t kMostTensors = 128;
    expect_range("the number of tensors of x", std::ssize(call_.x), 1, kMostTensors);
    expect_range("the number of tensors of weight", std::ssize(call_.weight), 1, kMostTensors);
    for (const StoredTensor& each : call_.weight) {
      expect_format("weight", each, /*or_blocked=*/true);
    }
    return grouped_kind(call_.x[0].dtype, call_.weight[0].dtype);
  }

  Tensors rows_of_x() const {
    Tensors all;
    for (const StoredTensor& x : call_.x) {
      expect_type("x", x, {call_.x[0].dtype}, " as the first tensor of x has");
      expect_format("x", x);
      expect_dims("x", x.elements, 2, 6);
      const at::Tensor elements = x.dtype == ACL_INT32 ? unpacked_rows(x.elements) : x.elements;
      all.push_back(elements.flatten(0, -2));
    }
    return all;
  }

  void expect_outputs(std::initializer_list<at::ScalarType> types) const {
    expect_dtypes(out_[0].name(), Tensors(out_.begin(), out_.end()), types);
  }

  void check_types() const {
    if (kind_ != GroupedKind::kWeight) {
      expect_none("antiquantScaleOptional", call_.antiquant_scale);
      expect_none("antiquantOffsetOptional", call_.antiquant_offset);
    }
    if (kind_ != GroupedKind::kInt8ByInt4) expect_none("offsetOptional", call_.offset);
    expect_dtypes("offsetOptional", call_.offset, {at::kFloat});
    expect_dtypes("perTokenScaleOptional", call_.per_token_scale, {at::kFloat});
    switch (kind_) {
      case GroupedKind::kPlain:
      case GroupedKind::kWeight: return check_floating();
      case GroupedKind::kInt8: return check_int8();
      default: return check_int4();
    }
  }

  void check_floating() const {
    const at::ScalarType type = x_[0].scalar_type();
    expect_none("scaleOptional", call_.scale);
    expect_none("perTokenScaleOptional", call_.per_token_scale);
    expect_dtypes("biasOptional", call_.bias, {type, at::kFloat});
    expect_outputs({type});
    if (kind_ == GroupedKind::kPlain) return;
    expect_some("antiquantScaleOptional", call_.antiquant_scale);
    expect_some("antiquantOffsetOptional", call_.antiquant_offset);
    expect_dtypes("antiquantScaleOptional", call_.antiquant_scale, {type});
    expect_dtypes("antiquantOffsetOptional", call_.antiquant_offset, {type});
  }

  void check_int8() const {
    const Tensors& scale = call_.scale;
    expect_dtypes("scaleOptional", scale, {at::kUInt64, at::kLong, at::kFloat, at::kBFloat16});
    if (!scale.empty() && !holds_bits(scale[0])) {
      expect_dtypes("scaleOptional", scale, {at::kFloat, at::kBFloat16});
      expect_dtypes("biasOptional", call_.bias, {at::kInt, at::kFloat, at::kHalf, at::kBFloat16});
      return expect_outputs({at::kHalf, at::kBFloat16});
    }
    expect_dtypes("scaleOptional", scale, {at::kUInt64, at::kLong});
    expect_dtypes("biasOptional", call_.bias, {at::kInt});
    expect_none("perTokenScaleOptional", call_.per_token_scale);
    expect_outputs({scale.empty() ? at::kInt : at::kChar});
  }

  void check_int4() const {
    expect_some("scaleOptional", call_.scale);
    expect_dtypes("scaleOptional", call_.scale, {at::kUInt64, at::kLong});
    expect_outputs({at::kHalf, at::kBFloat16});
    if (kind_ == GroupedKind::kInt4) return expect_none("biasOptional", call_.bias);
    expect_some("biasOptional", call_.bias);
    expect_some("perTokenScaleOptional", call_.per_token_scale);
    expect_dtypes("biasOptional", call_.bias, {at::kFloat});
  }

  void check_activation() const {
    const int64_t type = call_.activation;
    expect_one_of("actType", type, {0, 1, 2, 4, 5});
    EXPECT(type == 0 ||
               (kind_ == GroupedKind::kInt8 && at::isReducedFloatingType(out_[0]->scalar_type())),
           "actType is ", type, ", expected 0 unless x and weight are INT8 and ", out_[0].name(),
           " is FLOAT16 or BFLOAT16");
  }

  void expect_number_of_outputs(bool is_one) const {
    EXPECT(call_.split_item >= (is_one ? 2 : 0) && call_.split_item <= (is_one ? 3 : 1),
           "splitItem is ", call_.split_item, ", expected ", is_one ? "2 or 3" : "0 or 1",
           " for these numbers of tensors and this groupType");
    const size_t expected = is_one ? 1 : call_.weight.size();
    EXPECT(out_.size() == expected, out_[0].name(), " has ", out_.size(), " tensors, expected ",
           expected);
  }

  const at::Tensor& group_list(int64_t count) const {
    EXPECT(call_.group_list, "groupListOptional is null, expected a list as x has one tensor");
    const at::Tensor& list = *call_.group_list;
    EXPECT(list.dim() > 0 && list.size(0) == count, "groupListOptional has shape ", list.sizes(),
           ", expected ", count, " groups");
    return list;
  }
  std::vector<Group> listed_groups(int64_t count, int64_t limit) const {
    // For INT8 with INT4 the list has sizes, whatever groupListType is.
    const int64_t type = kind_ == GroupedKind::kInt8ByInt4 ? kGroupSizes : call_.list_type;
    return groups_of("groupListOptional", group_list(count), call_.is_list_on_device, type, count,
                     limit);
  }

  // The numbers of matrix i, from one tensor for all matrices or from a list.
  std::optional<at::Tensor> numbers(const char* name, const Tensors& list, int64_t i) const {
    if (list.empty()) return std::nullopt;
    EXPECT(list.size() == call_.weight.size(), name, " has ", list.size(), " tensors, expected ",
           call_.weight.size(), " as weight has");
    if (!weight_.is_one_tensor()) return list[static_cast<size_t>(i)];
    EXPECT(list[0].dim() > 1 && list[0].size(0) == weight_.count(), name, " has shape ",
           list[0].sizes(), ", expected numbers of ", weight_.count(), " matrices");
    return list[0].select(0, i);
  }

  std::optional<at::Tensor> token_scale(int64_t begin, int64_t size) const {
    const Tensors& list = call_.per_token_scale;
    if (list.empty()) return std::nullopt;
    EXPECT(list.size() == 1 && x_.size() == 1 && out_.size() == 1,
           "perTokenScaleOptional is given for ", x_.size(), " tensors of x and ", out_.size(),
           " of ", out_[0].name(), ", expected one of each");
    const bool is_column = list[0].dim() == 2 && list[0].size(1) == 1;
    const at::Tensor scale = is_column ? list[0].select(1, 0) : list[0];
    expect_shape("perTokenScaleOptional", scale, {x_[0].size(0)});
    return scale.narrow(0, begin, size);
  }

  // The product of rows of x, which start at row `begin`, with matrix i.
  at::Tensor product(const at::Tensor& x, int64_t i, int64_t begin) const {
    return activated(
        grouped_product(kind_, {x, weight_.at(i, x.size(1)), numbers("biasOptional", call_.bias, i),
                                numbers("scaleOptional", call_.scale, i),
                                numbers("offsetOptional", call_.offset, i),
                                numbers("antiquantScaleOptional", call_.antiquant_scale, i),
                                numbers("antiquantOffsetOptional", call_.antiquant_offset, i),
                                token_scale(begin, x.size(0))}),
        call_.activation);
  }

  // Each x has its own matrix.
  void run_lists() const {
    expect_number_of_outputs(false);
    expect_as_many_x();
    if (call_.group_list) {
      EXPECT(!call_.group_type, "groupListOptional is a list, expected null for groupType -1");
      check_groups();
    }
    for (size_t i = 0; i < x_.size(); ++i) {
      const at::Tensor result = product(x_[i], static_cast<int64_t>(i), 0);
      std::vector<int64_t> shape = call_.x[i].elements.sizes().vec();
      shape.back() = result.size(1);
      part_of(out_[i], out_[i]) = result.view(shape);
    }
  }
  void expect_as_many_x() const {
    EXPECT(x_.size() == call_.weight.size(), "x has ", x_.size(), " tensors, expected ",
           call_.weight.size(), " as weight has");
  }
  // Checks that the groups of the list are the tensors of x.
  void check_groups() const {
    const int64_t count = weight_.count();
    int64_t rows = 0;
    for (const at::Tensor& x : x_) rows += x.size(0);
    const std::vector<Group> groups = listed_groups(count, rows);
    if (static_cast<int64_t>(groups.size()) < count) return;  // The list has no values in stage 1.
    for (size_t i = 0; i < x_.size(); ++i) {
      EXPECT(groups[i].matrix == static_cast<int64_t>(i) && groups[i].size == x_[i].size(0),
             "groupListOptional has ", groups[i].size, " rows for tensor ", i, " of x, expected ",
             x_[i].size(0));
    }
  }

  // The groups are ranges of rows.
  void run_rows() const {
    const int64_t count = weight_.count();
    const bool is_one_x = x_.size() == 1;
    const bool has_many_outputs = call_.takes_many_outputs && is_one_x && out_.size() > 1;
    expect_number_of_outputs(!has_many_outputs);
    for (const StoredTensor& x : call_.x) expect_dims("x", x.elements, 2);
    std::vector<Group> groups;
    int64_t rows = 0;
    if (is_one_x) {
      rows = x_[0].size(0);
      groups = listed_groups(count, rows);
    } else {
      expect_as_many_x();
      if (call_.group_list) check_groups();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t size = x_[static_cast<size_t>(i)].size(0);
        groups.push_back({i, rows, size});
        rows += size;
      }
    }
    if (!out_[0].is_written()) {
      check_matrices(rows, has_many_outputs);
    } else if (!has_many_outputs) {
      // Stage 1 may not know the number of rows; the number of columns is that of every product.
      expect_dims(out_[0].name(), out_[0], 2);
      expect_shape(out_[0].name(), out_[0], {rows, out_[0]->size(1)});
    }
    for (const Group& group : groups) {
      const auto i = static_cast<size_t>(group.matrix);
      if (group.size == 0 && out_[0].is_written()) continue;
      const at::Tensor x = is_one_x ? x_[0].narrow(0, group.begin, group.size) : x_[i];
      const Output& out = has_many_outputs ? out_[i] : out_[0];
      part_of(out, has_many_outputs ? out : out->narrow(0, group.begin, group.size)) =
          product(x, group.matrix, group.begin);
    }
  }
  // Checks the operands of groups without rows, too.
  void check_matrices(int64_t rows, bool has_many_outputs) const {
    for (size_t i = 0; i < call_.weight.size(); ++i) {
      const at::Tensor& x = x_[x_.size() == 1 ? 0 : i];
      const at::Tensor none = product(x.narrow(0, 0, 0), static_cast<int64_t>(i), 0);
      if (!has_many_outputs) expect_shape(out_[0].name(), out_[0], {rows, none.size(1)});
    }
  }

  // The groups are ranges of the columns of one x; they correspond to ranges of the rows of one
  // weight, or to one weight each.
  void run_columns() const {
    EXPECT(kind_ == GroupedKind::kPlain, "groupType is 2, expected -1 or 0 as x has dtype ",
           dtype_name(call_.x[0].dtype), " and weight has dtype ",
           dtype_name(call_.weight[0].dtype));
    expect_none("biasOptional", call_.bias);
    EXPECT(x_.size() == 1, "x has ", x_.size(), " tensors, expected 1 for groupType 2");
    const at::Tensor x = wide(x_[0]);
    expect_dims("x", call_.x[0].elements, 2);
    for (const StoredTensor& each : call_.weight) expect_dims("weight", each.elements, 2);
    if (call_.weight.size() == 1) return run_columns_of_one(x, wide(call_.weight[0].elements));
    expect_number_of_outputs(false);
    EXPECT(!call_.group_list,
           "groupListOptional is a list, expected null as each weight is a tensor of its own");
    int64_t begin = 0;
    for (size_t i = 0; i < out_.size(); ++i) {
      const at::Tensor weight = wide(call_.weight[i].elements);
      EXPECT(weight.size(0) <= x.size(1) - begin, "weight has ", begin, " and ", weight.size(0),
             " rows, expected at most ", x.size(1), " as x has columns");
      part_of(out_[i], out_[i]) = at::matmul(x.narrow(1, begin, weight.size(0)), weight);
      begin += weight.size(0);
    }
  }
  void run_columns_of_one(const at::Tensor& x, const at::Tensor& weight) const {
    expect_number_of_outputs(true);
    const Output& out = out_[0];
    expect_dims(out.name(), out, 3);
    expect_shape("weight", weight, {x.size(1), weight.size(1)});
    expect_shape(out.name(), out, {out->size(0), x.size(0), weight.size(1)});
    for (const Group& group : listed_groups(out->size(0), x.size(1))) {
      part_of(out, out->select(0, group.matrix)) = at::matmul(
          x.narrow(1, group.begin, group.size), weight.narrow(0, group.begin, group.size));
    }
  }

  GroupedMatmul call_;
  const std::vector<Output>& out_;
  GroupedKind kind_;
  Tensors x_;
  Matrices weight_;
};

}  // namespace

void grouped_matmul(const GroupedMatmul& call, const std::vector<Output>& out) {
  Computation(call, out).run();
}

}  // namespace aclnn_host
