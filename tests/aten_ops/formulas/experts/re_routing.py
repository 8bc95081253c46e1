from __future__ import annotations

import numpy as np

from tests.aten_ops.formulas import formula


# ops-transformer: moe_re_routing/README.md. The tokens come in the order of ranks, then experts, and leave in that of
# experts, then ranks. The indices are the sources of the results (0) or the destinations of the tokens (1).
@formula(
    "aclnnMoeReRouting",
    calls=[
        f"aclnnMoeReRouting tokens={tokens}[7,2]{values} expertTokenNumPerRank={kind}[2,3]:2,0,1,1,3,0 "
        f"perTokenScalesOptional={scales} expertTokenNumType=1 idxType={index_type} permuteTokensOut={tokens}[7,2] "
        f"permutePerTokenScalesOut={scales} permuteTokenIdxOut=INT32[7] expertTokenNumOut={kind}[3]"
        for tokens, values, kind, scales, index_type in (
            ("FLOAT", "", "INT64", "FLOAT[7]", 0),
            ("BFLOAT16", "", "INT64", "FLOAT[7,3]", 1),
            ("INT8", ":12,-15,-1,13,-16,10,1,7,16,3,-9,14,2,17", "INT32", "null", 0),
        )
    ],
)
def moe_re_routing(tokens, counts, scales, counts_type, index_type):
    ranks, experts = counts.shape
    sources = np.argsort(np.tile(np.arange(experts), ranks).repeat(counts.reshape(-1)), kind="stable")
    moved = [tokens[sources], *([] if scales is None else [scales[sources]])]
    return [*moved, sources if index_type == 0 else np.argsort(sources), counts.sum(0)]
