from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula

LAYER_NORM, AFFINE_LAYER_NORM, RMS_NORM, AFFINE_RMS_NORM = range(1, 5)
INTERLEAVE = 1


def _turned(x, rope):
    if rope == INTERLEAVE:
        return np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    first, second = np.split(x, 2, -1)
    return np.concatenate([-second, first], -1)


def _joined(image, text, order):
    parts = [part for part in (image, text) if part is not None]
    return np.concatenate(parts[::-1] if order else parts, 1).transpose(0, 2, 1, 3)


def _call(name, **arguments):
    return " ".join([name, *(f"{key}={value}" for key, value in arguments.items())])


def _forward_call(norm, added, rope, order, text=True, training=True):
    """A call with two tokens of an image, for the keys three, and one of a text, which two are rotated."""
    size, queries, keys = 4, 2, 3
    shapes = {"Query": f"1,{queries},2", "Key": f"1,{keys},2", "Value": f"1,{keys},2"}
    arguments = {name.lower(): f"FLOAT[{shape},{size}]" for name, shape in shapes.items()}
    for name in shapes:
        arguments[f"encoder{name}"] = f"FLOAT[1,1,2,{size}]" if text else "null"
    for prefix, kind in (("norm", norm), ("normAdded", added)):
        for name in ("Query", "Key"):
            weight, bias = kind in (AFFINE_LAYER_NORM, AFFINE_RMS_NORM), kind == AFFINE_LAYER_NORM
            arguments[f"{prefix}{name}Weight"] = f"FLOAT[{size}]" if weight else "null"
            arguments[f"{prefix}{name}Bias"] = f"FLOAT[{size}]" if bias else "null"
    for name in ("ropeSin", "ropeCos"):
        arguments[name] = f"FLOAT[2,{size}]" if rope else "null"
    arguments |= {"normType": norm, "normAddedType": added, "ropeType": rope, "concatOrder": order}
    arguments |= {"eps": 0.25, "isTraining": str(training).lower()}
    for name, length in (("query", queries), ("key", keys), ("value", keys)):
        arguments[f"{name}Output"] = f"FLOAT[1,2,{length + text},{size}]"
    for prefix, kind in (("norm", norm), ("normAdded", added)):
        for name, length in (("Query", queries), ("Key", keys)):
            is_saved = training and kind in (LAYER_NORM, AFFINE_LAYER_NORM) and (text or prefix == "norm")
            shape = f"1,{length if prefix == 'norm' else 1},2,1"
            for saved in ("Mean", "Rstd"):
                arguments[f"{prefix}{name}{saved}"] = f"FLOAT[{shape}]" if is_saved else "null"
    return _call("aclnnNormRopeConcat", **arguments)


# ops-transformer: aclnnNormRopeConcat.md
@formula(
    "aclnnNormRopeConcat",
    calls=[
        _forward_call(LAYER_NORM, AFFINE_LAYER_NORM, 1, 0),
        _forward_call(AFFINE_LAYER_NORM, RMS_NORM, 2, 1),
        _forward_call(AFFINE_RMS_NORM, LAYER_NORM, 2, 0, training=False),
        _forward_call(RMS_NORM, 0, 0, 1),
        _forward_call(0, AFFINE_RMS_NORM, 1, 1, text=False),
    ],
)
def norm_rope_concat(query, key, value, text_query, text_key, text_value, *rest, outputs):
    parameters, (sin, cos, norm, added, rope, order, eps, _training) = rest[:8], rest[8:]
    saved = []

    def normalized(x, kind, weight, bias):
        if x is None:
            saved.extend([None, None])
            return None
        mean = x.mean(-1, keepdims=True)
        centred = x - mean if kind in (LAYER_NORM, AFFINE_LAYER_NORM) else x
        rstd = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
        saved.extend([mean, rstd])
        y = centred * rstd if kind else x
        y = y * weight if kind in (AFFINE_LAYER_NORM, AFFINE_RMS_NORM) else y
        return y + bias if kind == AFFINE_LAYER_NORM else y

    def rotated(x):
        if not rope:
            return x
        first = x[:, :, : len(sin)]
        return np.concatenate([first * cos + _turned(first, rope) * sin, x[:, :, len(sin) :]], 2)

    image_query, image_key = normalized(query, norm, *parameters[:2]), normalized(key, norm, *parameters[2:4])
    text_query = normalized(text_query, added, *parameters[4:6])
    text_key = normalized(text_key, added, *parameters[6:])
    results = rotated(_joined(image_query, text_query, order)), rotated(_joined(image_key, text_key, order))
    all_results = *results, _joined(value, text_value, order), *saved
    return [result for result, output in zip(all_results, outputs.values(), strict=True) if output is not None]


def _backward_call(norm, added, rope, order, text=True):
    size, queries, keys = 4, 2, 3
    lengths = {"Query": queries, "Key": keys, "Value": keys}
    arguments = {f"grad{name}Output": f"FLOAT[1,2,{length + text},{size}]" for name, length in lengths.items()}
    arguments |= {name: f"FLOAT[1,{lengths[name.title()]},2,{size}]" for name in ("query", "key")}
    arguments |= {f"encoder{name}": f"FLOAT[1,1,2,{size}]" if text else "null" for name in ("Query", "Key")}
    for prefix, kind in (("norm", norm), ("normAdded", added)):
        for name in ("Query", "Key"):
            is_given = text or prefix == "norm"
            saved = f"FLOAT[1,{lengths[name] if prefix == 'norm' else 1},2,1]" if kind and is_given else "null"
            is_affine = is_given and kind == AFFINE_LAYER_NORM
            arguments[f"{prefix}{name}Weight"] = f"FLOAT[{size}]" if is_affine else "null"
            arguments |= {f"{prefix}{name}Mean": saved, f"{prefix}{name}Rstd": saved}
    for name in ("ropeSin", "ropeCos"):
        arguments[name] = f"FLOAT[2,{size}]" if rope else "null"
    arguments |= {"normType": norm, "normAddedType": added, "ropeType": rope, "concatOrder": order}
    for prefix in ("grad", "gradEncoder"):
        for name, length in lengths.items():
            shape = f"FLOAT[1,{length if prefix == 'grad' else 1},2,{size}]"
            arguments[f"{prefix}{name}"] = shape if text or prefix == "grad" else "null"
    for prefix, kind in (("gradNorm", norm), ("gradNormAdded", added)):
        for name in ("QueryWeight", "QueryBias", "KeyWeight", "KeyBias"):
            is_written = kind == AFFINE_LAYER_NORM and (text or prefix == "gradNorm")
            arguments[f"{prefix}{name}"] = f"FLOAT[{size}]" if is_written else "null"
    return _call("aclnnNormRopeConcatBackward", **arguments)


# ops-transformer: aclnnNormRopeConcatBackward.md; where its Half() alternates elements of both halves, the formula is
# the gradient of aclnnNormRopeConcat.md's rotation.
@formula(
    "aclnnNormRopeConcatBackward",
    calls=[
        _backward_call(LAYER_NORM, AFFINE_LAYER_NORM, 1, 0),
        _backward_call(AFFINE_LAYER_NORM, 0, 2, 1),
        _backward_call(0, LAYER_NORM, 0, 1, text=False),
    ],
)
def norm_rope_concat_gradient(of_query, of_key, of_value, query, key, text_query, text_key, *rest, outputs):
    saved, (sin, cos, norm, added, rope, order) = rest[:12], rest[12:]

    def parts(gradient, length):
        if rope:
            first = gradient[:, :, : len(sin)]
            back = first * cos - _turned(first * sin, rope)
            gradient = np.concatenate([back, gradient[:, :, len(sin) :]], 2)
        return split(gradient, length)

    def split(gradient, length):
        tokens = gradient.transpose(0, 2, 1, 3)
        return (tokens[:, -length:], tokens[:, :-length]) if order else (tokens[:, :length], tokens[:, length:])

    def gradients(gradient, x, kind, weight, mean, rstd):
        if x is None or not kind:
            return gradient, None, None
        normalized = (x - mean) * rstd
        of_normalized = gradient * weight if kind == AFFINE_LAYER_NORM else gradient
        centred = of_normalized - of_normalized.mean(-1, keepdims=True)
        of_x = rstd * (centred - normalized * (of_normalized * normalized).mean(-1, keepdims=True))
        return of_x, (gradient * normalized).sum((0, 1, 2)), gradient.sum((0, 1, 2))

    (image_q, text_q), (image_k, text_k) = parts(of_query, query.shape[1]), parts(of_key, key.shape[1])
    image_v, text_v = split(of_value, key.shape[1])
    q, qw, qb = gradients(image_q, query, norm, *saved[:3])
    k, kw, kb = gradients(image_k, key, norm, *saved[3:6])
    tq, tqw, tqb = gradients(text_q, text_query, added, *saved[6:9])
    tk, tkw, tkb = gradients(text_k, text_key, added, *saved[9:])
    results = q, k, image_v, tq, tk, text_v, qw, qb, kw, kb, tqw, tqb, tkw, tkb
    return [result for result, output in zip(results, outputs.values(), strict=True) if output is not None]
