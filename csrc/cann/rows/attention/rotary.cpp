// Rotary position embeddings: rotate pairs of elements of the last dimension by an angle.

#include "cann/rows/attention/turns.h"
#include "cann/rows/row.h"

namespace aclnn_host::attention_rotary_rows {

namespace {

// CANN's numbers for the elements that form a pair.
enum Mode : int64_t { kHalf, kInterleave, kQuarter, kInterleaveHalf };

Mode mode_of(int64_t mode) {
  EXPECT(mode >= kHalf && mode <= kInterleaveHalf, "mode is ", mode,
         ", expected 0 (half), 1 (interleave), 2 (quarter) or 3 (interleave-half)");
  return static_cast<Mode>(mode);
}
Mode mode_of(const std::string& name) {
  if (name == "interleave") return kInterleave;
  if (name == "quarter") return kQuarter;
  expect_text("rotaryMode", name, {"half", "interleave", "quarter"});
  return kHalf;
}

// Reorders the elements as in the result; the order changes only in interleave-half.
at::Tensor arranged(const at::Tensor& x, Mode mode) {
  return mode == kInterleaveHalf ? at::cat({every_second(x, 0), every_second(x, 1)}, -1) : x;
}
// The inverse of arranged().
at::Tensor restored(const at::Tensor& x, Mode mode) {
  if (mode != kInterleaveHalf) return x;
  const auto halves = x.chunk(2, -1);
  return interleaved(halves[0], halves[1]);
}
// Maps each pair (a, b) of arranged elements to (-b, a).
at::Tensor quarter_turn(const at::Tensor& x, Mode mode) {
  if (mode == kInterleave) return turned_neighbours(x);
  if (mode == kQuarter) return turned_halves(x.unflatten(-1, {2, x.size(-1) / 2})).flatten(-2);
  return turned_halves(x);
}

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, Mode mode) {
  const at::Tensor start = arranged(wide(x), mode);
  return start * wide(cos) + quarter_turn(start, mode) * wide(sin);
}

void expect_pairs(const char* name, const at::Tensor& x, Mode mode) {
  const int64_t part = mode == kQuarter ? 4 : 2;
  EXPECT(x.size(-1) % part == 0 && x.size(-1) <= 1024, "the last dimension of ", name, " is ",
         x.size(-1), ", expected a multiple of ", part, " up to 1024");
}

// True if the document allows angles of this shape for x.
bool fits(at::IntArrayRef angles, at::IntArrayRef x) {
  int64_t own = 0;
  for (size_t i = 0; i < 3; ++i) {
    if (angles[i] != 1 && angles[i] != x[i]) return false;
    own += angles[i] != 1;
  }
  // If two dimensions are those of x, the first is one of them.
  return angles[3] == x[3] && (own != 2 || angles[0] != 1 || x[0] == 1);
}

void check_angles(const char* name, const at::Tensor& x, const at::Tensor& cos,
                  const at::Tensor& sin, Mode mode) {
  expect_dims(name, x, 4);
  expect_dims("cos", cos, 4);
  expect_dtype("cos", cos, x);
  expect_dtype("sin", sin, x);
  expect_shape("sin", sin, cos.sizes());
  expect_pairs(name, x, mode);
  EXPECT(fits(cos.sizes(), x.sizes()), "cos has shape ", cos.sizes(), ", expected the one of ",
         name, ", which is ", x.sizes(),
         ", with the first three dimensions 1, or two of them, or the second or the third");
}

// The same check, also for x of three dimensions (tokens, heads, elements), which are one batch.
void check_angles_of_any(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                         Mode mode) {
  expect_dims("x", x, 3, 4);
  expect_dims("cos", cos, x.dim());
  expect_dims("sin", sin, x.dim());
  if (x.dim() == 4) return check_angles("x", x, cos, sin, mode);
  check_angles("x", x.unsqueeze(0), cos.unsqueeze(0), sin.unsqueeze(0), mode);
}

// Embeds query and key in place. The layout decides which dimension is the heads; cos and sin have
// size 1 there.
void embed(Output& query, Output& key, const at::Tensor& cos, const at::Tensor& sin, int64_t layout,
           Mode mode) {
  expect_dims("queryRef", query, 4);
  const int64_t heads = layout == 3 ? 1 : 2;
  std::vector<int64_t> shape = query->sizes().vec();
  EXPECT(shape[3] == 128, "the last dimension of queryRef is ", shape[3], ", expected 128");
  expect_dims("keyRef", key, 4);
  shape[static_cast<size_t>(heads)] = key->size(heads);
  expect_shape("keyRef", key, shape);
  shape[static_cast<size_t>(heads)] = 1;
  expect_shape("cos", cos, shape);
  expect_shape("sin", sin, shape);
  const at::Tensor new_query = rotated(query, cos, sin, mode);
  const at::Tensor new_key = rotated(key, cos, sin, mode);
  query = new_query;
  key = new_key;
}

// The part [start, end) of the last dimension, which a partial rotation turns.
struct Slice {
  int64_t start, end;
  int64_t size() const { return end - start; }
};
Slice slice_of(at::IntArrayRef slice, int64_t size) {
  EXPECT(slice.size() == 2, "partialSlice has ", slice.size(), " elements, expected 2");
  EXPECT(slice[0] >= 0 && slice[0] <= slice[1] && slice[1] <= size, "partialSlice is ", slice,
         ", expected a start and an end from 0 to ", size);
  return {slice[0], slice[1]};
}
void check_partial(const char* name, const at::Tensor& x, const at::Tensor& cos,
                   const at::Tensor& sin, const Slice& part) {
  expect_dims("cos", cos, 4);
  expect_shape("sin", sin, cos.sizes());
  EXPECT(part.size() % 2 == 0, "partialSlice has ", part.size(),
         " elements of the last dimension, expected an even number");
  const auto each = [&](int64_t dim) { return Size::or_one(x.size(dim)); };
  expect_sizes("cos", cos, {each(0), each(1), each(2), part.size()});
  expect_elements(name, x);
}
void expect_interleave(const char* name, int64_t mode) {
  EXPECT(mode == kInterleave, name, " is ", mode,
         ", expected 1 (interleave), the only one supported");
}
void expect_partial(const char* name, const at::Tensor& x) {
  constexpr int64_t kMost = 1024;
  expect_dtype(name, x, {at::kFloat, at::kHalf, at::kBFloat16});
  expect_dims(name, x, 4);
  EXPECT(x.size(3) <= kMost, "the last dimension of ", name, " is ", x.size(3), ", expected up to ",
         kMost);
}
// Writes `turned` in place of the part.
void replace(Output& x, const Slice& part, const at::Tensor& turned) {
  const at::Tensor all = wide(x).clone();
  all.narrow(-1, part.start, part.size()).copy_(turned);
  x = all;
}

}  // namespace

// An empty x has an empty result, whatever the shapes of cos and sin.
// Behaviour of RotaryPositionEmbedding*, ApplyRotaryPosEmb*: Everything is computed in FLOAT, and
// each result is rounded once.
ACLNN(RotaryPositionEmbedding, (Floating<In>, x), (Floating<In>, cos), (Floating<In>, sin),
      (int64_t, mode), (SameDtype<Out>, out, "x")) {
  const Mode pairs = mode_of(mode);
  if (x.numel() == 0) {
    out = x;
    return;
  }
  check_angles("x", x, cos, sin, pairs);
  out = rotated(x, cos, sin, pairs);
}
// A matrix replaces the mode: the rotated elements are those of x times `rotate`.
ACLNN(RotaryPositionEmbeddingV2, (Floating<In>, x), (Floating<In>, cos), (Floating<In>, sin),
      (int64_t, mode), (Optional<In>, rotate), (SameDtype<Out>, out, "x")) {
  const Mode pairs = mode_of(mode);
  if (x.numel() == 0) {
    out = x;
    return;
  }
  check_angles_of_any(x, cos, sin, pairs);
  if (!rotate) {
    out = rotated(x, cos, sin, pairs);
    return;
  }
  expect_dtype("rotate", *rotate, x);
  expect_shape("rotate", *rotate, {x.size(-1), x.size(-1)});
  out = wide(x) * wide(cos) + at::matmul(wide(x), wide(*rotate)) * wide(sin);
}
// Without xOptional, the gradients of cos and sin are not computed.
ACLNN(RotaryPositionEmbeddingGrad, (Floating<In>, dy), (Floating<In>, cos), (Floating<In>, sin),
      (Like<Optional<In>>, xOptional, "dy"), (int64_t, mode), (SameDtype<Out>, dxOut, "dy"),
      (SameDtype<Out>, dcosOut, "dy"), (SameDtype<Out>, dsinOut, "dy")) {
  const Mode pairs = mode_of(mode);
  check_angles("dy", dy, cos, sin, pairs);
  const at::Tensor gradient = wide(dy);
  const at::Tensor dx =
      restored(gradient * wide(cos) - quarter_turn(gradient * wide(sin), pairs), pairs);
  if (!xOptional) {
    dxOut = dx;
    return;
  }
  const at::Tensor x = arranged(wide(*xOptional), pairs);
  const at::Tensor dcos = (gradient * x).sum_to_size(cos.sizes());
  const at::Tensor dsin = (gradient * quarter_turn(x, pairs)).sum_to_size(sin.sizes());
  dxOut = dx;
  dcosOut = dcos;
  dsinOut = dsin;
}

ACLNN(ApplyRotaryPosEmb, (Floating<InOut>, queryRef),
      (SameDtype<Floating<InOut>>, keyRef, "queryRef"), (SameDtype<Floating<In>>, cos, "queryRef"),
      (SameDtype<Floating<In>>, sin, "queryRef"), (int64_t, layout)) {
  EXPECT(layout == 1, "layout is ", layout, ", expected 1 (BSND), the only one supported");
  embed(queryRef, keyRef, cos, sin, layout, kHalf);
}
ACLNN(ApplyRotaryPosEmbV2, (Floating<InOut>, queryRef),
      (SameDtype<Floating<InOut>>, keyRef, "queryRef"), (SameDtype<Floating<In>>, cos, "queryRef"),
      (SameDtype<Floating<In>>, sin, "queryRef"), (int64_t, layout), (char*, rotaryMode)) {
  EXPECT(layout >= 1 && layout <= 3, "layout is ", layout,
         ", expected 1 (BSND), 2 (SBND) or 3 (BNSD)");
  embed(queryRef, keyRef, cos, sin, layout, mode_of(rotaryMode));
}

// The pairs are interleaved; the first half of the result has the first elements of all pairs.
ACLNN(InterleaveRope, (Floating<In>, x), (SameDtype<Floating<In>>, cos, "x"),
      (Like<Floating<In>>, sin, "cos"), (SameDtype<Out>, out, "x")) {
  expect_dims("x", x, 4);
  EXPECT(x.size(3) == 64, "the last dimension of x is ", x.size(3), ", expected 64");
  expect_dims("cos", cos, 4);
  expect_shape("cos", cos, {x.size(0), 1, cos.size(2) == 1 ? 1 : x.size(2), 64});
  out = rotated(x, cos, sin, kInterleaveHalf);
}

// Without partialSlice the whole last dimension is turned; an empty part leaves x as it is.
// Behaviour of InplacePartialRotaryMul*: cos and sin may have the shapes that the document lists
// for any product.
ACLNN(InplacePartialRotaryMul, (Floating<InOut>, xRef), (Floating<In>, cos),
      (SameDtype<Floating<In>>, sin, "cos"), (int64_t, rotary_mode),
      (Optional<Ints>, partialSlice)) {
  expect_interleave("rotary_mode", rotary_mode);
  expect_partial("xRef", xRef);
  const at::Tensor& x = xRef;
  EXPECT(x.size(3) % 2 == 0, "the last dimension of xRef is ", x.size(3), ", expected an even one");
  if (cos.scalar_type() != at::kFloat) expect_dtype("cos", cos, x);
  const bool is_given = partialSlice && !partialSlice->empty();
  const Slice part = is_given ? slice_of(*partialSlice, x.size(3)) : Slice{0, x.size(3)};
  if (part.size() == 0) return;
  check_partial("xRef", x, cos, sin, part);
  EXPECT(cos.size(0) == x.size(0) || cos.numel() == cos.size(3), "cos has shape ", cos.sizes(),
         ", expected ", x.size(0), " as the first size, or 1 in all dimensions but the last");
  replace(xRef, part, rotated(x.narrow(-1, part.start, part.size()), cos, sin, kInterleave));
}
ACLNN(InplacePartialRotaryMulGrad, (Floating<InOut>, dyRef), (Floating<In>, cos),
      (SameDtype<Floating<In>>, sin, "cos"), (int64_t, rotaryMode),
      (Optional<Ints>, partialSlice)) {
  expect_interleave("rotaryMode", rotaryMode);
  expect_partial("dyRef", dyRef);
  expect_dtype("cos", cos, {at::kFloat, at::kHalf, at::kBFloat16});
  const at::Tensor& dy = dyRef;
  const Slice part = partialSlice ? slice_of(*partialSlice, dy.size(3)) : Slice{0, 0};
  EXPECT(part.size() > 0, "partialSlice is empty, expected elements of the last dimension");
  check_partial("dyRef", dy, cos, sin, part);
  const at::Tensor gradient = wide(dy).narrow(-1, part.start, part.size());
  replace(dyRef, part, gradient * wide(cos) - quarter_turn(gradient * wide(sin), kInterleave));
}

}  // namespace aclnn_host::attention_rotary_rows
