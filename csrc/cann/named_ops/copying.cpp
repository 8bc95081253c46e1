// Copies: conversions of formats and types, strided views, and rearrangements.

#include "cann/named_ops/operator.h"

namespace aclnn_host::named_copying {

namespace {

// The view of the next input that the three inputs after it describe.
struct View {
  const aclTensor* base;
  Integers sizes, strides;
  int64_t offset;

  explicit View(NamedArguments& arguments)
      : base(arguments.next_input()),
        sizes(integers_of(arguments.next_values("size"))),
        strides(integers_of(arguments.next_values("stride"))),
        offset(one_of("storage_offset", integers_of(arguments.next_values("storage_offset")))) {}
  // A view with these strides in the memory of the input. The sizes of its description may be those
  // of a larger tensor; they are ignored.
  aclTensor tensor() const {
    EXPECT(sizes.size() == strides.size(), "size has ", sizes.size(), " numbers and stride ",
           strides.size(), ", expected as many of both");
    aclTensor view;
    view.view = base->view;
    view.storage_shape = base->storage_shape;
    view.view.shape.assign(sizes.data(), sizes.size());
    view.view.strides.assign(strides.data(), strides.size());
    view.view.offset = offset;
    return view;
  }
};

// Copies an input to an output, and expands its shape to the output's.
void copy(const Frame& frame) {
  Output out = Out::get(frame, 1);
  expect_dtype(out, In::get(frame, 0));
  out = as_movable(In::get(frame, 0)).expand(out->sizes()).view(out->scalar_type());
}

aclnnStatus finish_copy(NamedArguments& arguments, Preparation& stage, const aclTensor* from,
                        aclTensor* to) {
  In::add(stage, "x", from);
  Out::add(stage, "y", to);
  arguments.give_memory(stage);
  arguments.expect_all_taken();
  return stage.finish(copy);
}

const NamedOperator entry_as_strided("AsStrided", "aclop AsStrided",
                                     [](NamedArguments& arguments, Preparation& stage) {
                                       const View from(arguments);
                                       aclTensor* const y = arguments.next_output();
                                       if (from.base == nullptr)
                                         return finish_copy(arguments, stage, nullptr, y);
                                       const aclTensor source = from.tensor();
                                       return finish_copy(arguments, stage, &source, y);
                                     });

const NamedOperator entry_view_copy(
    "ViewCopy", "aclop ViewCopy", [](NamedArguments& arguments, Preparation& stage) {
      const View to(arguments);
      const View from(arguments);
      arguments.next_output();  // it has the memory of the first input
      if (to.base == nullptr || from.base == nullptr) {
        return finish_copy(arguments, stage, nullptr, nullptr);
      }
      const aclTensor source = from.tensor();
      aclTensor target = to.tensor();
      return finish_copy(arguments, stage, &source, &target);
    });

constexpr const char* kOnly = ", which alone the host CANN emulates";

// Applies StridedSlice to one dimension after the other, from numbers and bit masks.
at::Tensor strided_slice(const at::Tensor& x, const Integers& begin, const Integers& end,
                         const Integers& strides, int64_t begin_mask, int64_t end_mask,
                         int64_t shrink_mask) {
  EXPECT(begin.size() == end.size() && begin.size() == strides.size() &&
             static_cast<int64_t>(begin.size()) <= x.dim(),
         "begin, end and strides have ", begin.size(), ", ", end.size(), " and ", strides.size(),
         " numbers, expected as many of each, at most ", x.dim());
  at::Tensor result = x;
  int64_t dim = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto bit = [i](int64_t mask) { return (mask >> i & 1) != 0; };
    EXPECT(strides[i] > 0, "strides[", i, "] is ", strides[i], ", expected 1 or more");
    if (bit(shrink_mask)) {
      result = result.select(dim, begin[i]);
      continue;
    }
    const int64_t from = bit(begin_mask) ? 0 : begin[i];
    const int64_t to = bit(end_mask) ? result.size(dim) : end[i];
    result = result.slice(dim++, from, to, strides[i]);
  }
  return result;
}

}  // namespace

NAMED_OPERATOR(Identity, (In, x), (Out, y)) {
  y = x;
}
NAMED_OPERATOR(TransData, (In, src), (Out, dst),
               (Unused<Attribute<std::string>>, src_format, "the tensors' own formats say it"),
               (Unused<Attribute<std::string>>, dst_format, "the tensors' own formats say it"),
               (Unused<Attribute<int64_t>>, src_subformat, "the tensors' own formats say it"),
               (Unused<Attribute<int64_t>>, dst_subformat, "the tensors' own formats say it"),
               (Only, groups, "1")) {
  dst = src;
}
NAMED_OPERATOR(Cast, (In, x), (Out, y),
               (Unused<Attribute<int64_t>>, dst_type, "the dtype of y says it")) {
  y.copy(x);
}
NAMED_OPERATOR(Transpose, (In, x), (HostInts, perm), (Out, y)) {
  y = x.permute(perm);
}
NAMED_OPERATOR(ConfusionTransposeD, (In, x), (Out, y), (Attribute<Integers>, perm),
               (Attribute<Integers>, shape), (Attribute<bool>, transpose_first)) {
  EXPECT(perm, "attribute perm is absent, expected the order of the dimensions");
  EXPECT(shape, "attribute shape is absent, expected the sizes of y");
  y = transpose_first.value_or(false) ? x.permute(*perm).reshape(*shape)
                                      : x.reshape(*shape).permute(*perm);
}
NAMED_OPERATOR(Slice, (In, x), (HostInts, offsets), (HostInts, size), (Out, y)) {
  EXPECT(offsets.size() == size.size() && static_cast<int64_t>(size.size()) == x.dim(),
         "offsets and size have ", offsets.size(), " and ", size.size(), " numbers, expected ",
         x.dim());
  at::Tensor part = x;
  for (size_t i = 0; i < size.size(); ++i) {
    const auto dim = static_cast<int64_t>(i);
    EXPECT(offsets[i] >= 0 && offsets[i] <= x.size(dim), "offsets[", i, "] is ", offsets[i],
           ", expected 0 to ", x.size(dim));
    part = part.narrow(dim, offsets[i], size[i] == -1 ? x.size(dim) - offsets[i] : size[i]);
  }
  y = part;
}
NAMED_OPERATOR(StridedSlice, (In, x), (HostInts, begin), (HostInts, end), (HostInts, strides),
               (Out, y), (Attribute<int64_t>, begin_mask), (Attribute<int64_t>, end_mask),
               (Attribute<int64_t>, ellipsis_mask), (Attribute<int64_t>, new_axis_mask),
               (Attribute<int64_t>, shrink_axis_mask)) {
  expect_one_of("ellipsis_mask", ellipsis_mask.value_or(0), {0}, kOnly);
  expect_one_of("new_axis_mask", new_axis_mask.value_or(0), {0}, kOnly);
  y = strided_slice(x, begin, end, strides, begin_mask.value_or(0), end_mask.value_or(0),
                    shrink_axis_mask.value_or(0));
}
NAMED_OPERATOR(BroadcastTo, (In, x), (HostInts, shape), (Out, y)) {
  y = x.expand(shape);
}
NAMED_OPERATOR(Tile, (In, x), (HostInts, multiples), (Out, y)) {
  expect_sizes_from_0("multiples", multiples);
  y = x.repeat(multiples);
}
NAMED_OPERATOR(ConcatD, (Ins, x), (Out, y), (Attribute<int64_t>, concat_dim),
               (Unused<Attribute<int64_t>>, N, "the number of tensors says it")) {
  y = at::cat(x, concat_dim.value_or(0));
}
NAMED_OPERATOR(Pack, (Ins, x), (Out, y), (Attribute<int64_t>, axis),
               (Unused<Attribute<int64_t>>, N, "the number of tensors says it")) {
  y = at::stack(x, axis.value_or(0));
}
NAMED_OPERATOR(ReverseV2, (In, x), (HostInts, axis), (Out, y)) {
  y = x.flip(axis);
}
NAMED_OPERATOR(Roll, (In, x), (Out, y), (Attribute<Integers>, shifts),
               (Attribute<Integers>, dims)) {
  y = x.roll(shifts.value_or(Integers()), dims.value_or(Integers()));
}
NAMED_OPERATOR(ZerosLike, (In, x), (Out, y)) {
  y = x.new_zeros(x.sizes());
}
NAMED_OPERATOR(OnesLike, (In, x), (Out, y)) {
  y = x.new_ones(x.sizes());
}
NAMED_OPERATOR(Fill, (HostInts, dims), (In, value), (Out, y)) {
  expect_repeats("dims", dims, "y", y);
  expect_one("value", value);
  y = value.reshape({}).expand(y->sizes());
}
NAMED_OPERATOR(Diag, (In, x), (Out, y), (Attribute<int64_t>, diagonal)) {
  expect_dims("x", x, 1);
  y = x.diag(diagonal.value_or(0));
}
NAMED_OPERATOR(DiagPart, (In, x), (Out, y), (Attribute<int64_t>, diagonal)) {
  expect_dims("x", x, 2);
  y = x.diag(diagonal.value_or(0));
}
NAMED_OPERATOR(Tril, (In, x), (Out, y), (Attribute<int64_t>, diagonal)) {
  y = moved(x, [&](const at::Tensor& all) { return all.tril(diagonal.value_or(0)); });
}
NAMED_OPERATOR(Triu, (In, x), (Out, y), (Attribute<int64_t>, diagonal)) {
  y = moved(x, [&](const at::Tensor& all) { return all.triu(diagonal.value_or(0)); });
}
NAMED_OPERATOR(ShuffleChannel, (In, x), (Out, y), (Attribute<int64_t>, group)) {
  const int64_t groups = group.value_or(1);
  EXPECT(x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0, "x has shape ", x.sizes(),
         ", expected channels in dimension 1, a multiple of ", groups);
  y = x.unflatten(1, {groups, x.size(1) / groups}).transpose(1, 2).reshape(x.sizes());
}

}  // namespace aclnn_host::named_copying
