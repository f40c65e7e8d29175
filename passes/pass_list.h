// Every pass of weft, a line each, in the order in which they run: its name,
// its function, how often it runs, and the tolerances of PassEntry (pipeline.h)
// if it has any. Included with WEFT_PASS defined; passes.h declares from it,
// pipeline.cc lists it.
//
// Why this order: adapters stand beside products as they were written; rounding
// of activations is decided before the fusions that contain it; the gate is
// fused before Q, K and V so that what is left with one input in common are
// those three; norms come after both, since they fuse into what these leave;
// layouts and packing see the final products.
WEFT_PASS("dead-code", DeadCode, kOnce)
WEFT_PASS("add-adapters", AddAdapters, kOnce,
          std::numeric_limits<double>::infinity())
WEFT_PASS("quantize-activations", QuantizeActivations, kOnce, 0.25)
WEFT_PASS("common-subexpression", CommonSubexpression, kOnce)
WEFT_PASS("fuse-attention", FuseAttention, kOnce, 1e-5)
WEFT_PASS("shard", Shard, kOnce)
WEFT_PASS("fuse-conv-silu", FuseConvSilu, kOnce)
WEFT_PASS("fuse-silu-gate", FuseSiluGate, kOnce)
WEFT_PASS("fuse-norm-gate", FuseNormGate, kOnce, 1e-5)
WEFT_PASS("fuse-gelu-gate", FuseGeluGate, kOnce)
WEFT_PASS("fuse-clamped-gate", FuseClampedGate, kOnce)
WEFT_PASS("fuse-qkv", FuseQkv, kOnce)
WEFT_PASS("fuse-rmsnorm-matmul", FuseRmsNormMatmul, kOnce)
WEFT_PASS("fuse-layernorm-matmul", FuseLayerNormMatmul, kOnce)
WEFT_PASS("fuse-residual", FuseResidual, kOnce)
WEFT_PASS("fuse-rope-kv-write", FuseRopeKvWrite, kOnce)
WEFT_PASS("fold-constants", FoldConstants, kOnce)
WEFT_PASS("choose-layouts", ChooseLayouts, kOnce, 0, 0.1)
WEFT_PASS("pack-weights", PackWeights, kOnce)
WEFT_PASS("choose-kernels", ChooseKernels, kPerBucket)
WEFT_PASS("schedule", Schedule, kPerBucket)
WEFT_PASS("plan-buffers", PlanBuffers, kPerBucket)
