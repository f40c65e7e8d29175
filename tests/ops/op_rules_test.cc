// Rules of the ops: what each refuses, and with what message.
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "graph/text_format.h"
#include "gtest/gtest.h"
#include "ops/op_table.h"

namespace weft {
namespace {

using testing::HasSubstr;

// Operands of every kind.
constexpr char kSources[] = R"(graph rules tokens<=4 rows<=4 context<=64
  $v8 = weight f32[8]
  $v64 = weight f32[64]
  $w = weight f32[64,64]
  $q = weight q4_0[64,64]
  $q96 = weight q4_0[96,64]
  $q16 = weight f32[12,16]
  $p = weight q4_0[64,64]{panel16}
  $experts = weight q4_0[512,64]
  $halves = weight f32[4]
  $v512 = weight f32[512]
  %0 = input ids i32[T]
  %1 = input positions i32[T]
  %2 = input sequence i32[T]
  %3 = input x f32[T,64]
  %4 = input y f32[T,8]
  %5 = input rows i32[R]
  %6 = state keys f16[S,2,32]{keys}
  %7 = state values f16[S,2,32]{values}
  %60 = state other f16[S,2,16]{keys}
  %8 = input attention f32[T,4,S]
  %10 = state window f32[3,64]{window}
  %11 = state matrices f32[8,8,8]{matrices}
  %12 = state channels f32[1,16,64]{matrices}
  %13 = input b f32[T,16]
  $taps = weight f32[4,64]
  $v64x8 = weight f32[64,8]
  $a = weight f32[16,64]
  %90, %91 = top_k(%4) k=3 normalize=1 i32[T,3], f32[T,3]
)";

std::string Verdict(const std::string& line) {
  absl::StatusOr<Graph> graph = ParseGraph(kSources + line + "\n");
  if (!graph.ok()) return std::string(graph.status().message());
  const Node& node = graph->node(1);
  graph->AddOutput("result", node.outputs[0]);
  return std::string(VerifyGraph(*graph).message());
}

// A legal use of each op.
const char* const kLegal[] = {
    "%9 = embed(%0, $q) f32[T,64]",
    "%9 = embed(%0, $p) f32[T,64]",
    "%9 = rms_norm(%3, $v64) eps=1e-05 f32[T,64]",
    "%9 = rms_norm(%3, $v8) eps=1e-05 heads=8 f32[T,64]",
    "%9 = rms_norm(%3, $v64) eps=1e-05 heads=8 f32[T,64]",
    "%9 = rms_norm(%3) eps=1e-05 heads=8 f32[T,64]",
    "%9 = layer_norm(%3, $v64, $v64) eps=1e-05 f32[T,64]",
    "%9 = layer_norm(%3, $v64) eps=1e-05 f32[T,64]",
    "%9 = layer_norm(%3, $v8, $v8) eps=1e-05 heads=8 f32[T,64]",
    "%9 = matmul(%3, $w) f32[T,64]",
    "%9 = matmul(%3, $p) f32[T,64]",
    "%9 = add(%3, %3) f32[T,64]",
    "%9 = add(%3, $v64) f32[T,64]",
    "%9 = mul(%3, %3) f32[T,64]",
    "%9 = scale(%3) factor=-2.5 f32[T,64]",
    "%9 = softcap(%3) cap=30.0 f32[T,64]",
    "%9 = silu(%3) f32[T,64]",
    "%9 = gelu(%3) approximation=\"tanh\" f32[T,64]",
    "%9 = rope(%4, %1) base=1e4 head_dim=8 rope_dims=8 scale=1.0 "
    "style=\"halves\" f32[T,8]",
    "%9 = rope(%4, %1) base=1e4 head_dim=8 magnitude=1.25 ramp_begin=0.0 "
    "ramp_end=3.0 rope_dims=8 scale=0.25 style=\"halves\" f32[T,8]",
    "%9 = kv_write(%6, %3, %1, %2) f16[S,2,32]{keys}",
    "%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 f32[T,2,S]",
    "%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 softcap=50.0 "
    "window=4 f32[T,2,S]",
    "%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 temperature=0.1 "
    "temperature_offset=1 temperature_period=8192 f32[T,2,S]",
    "%9 = attention_scores(%3, %6, %1, %2, %1) alibi=8.0 heads=2 scale=1.0 "
    "f32[T,2,S]",
    "%9 = softmax(%8) f32[T,4,S]",
    "%9 = attention_values(%8, %7, %1, %2) f32[T,128]",
    "%9 = attention_values(%8, %6, %1, %2) f32[T,128]",
    "%9 = attention_values(%8, %6, %1, %2) value_dim=24 f32[T,96]",
    "%9 = head_matmul(%3, $q16) heads=4 f32[T,12]",
    "%9 = transpose_rows($q16) begin=1 parts=4 size=2 f32[64,2]",
    "%9 = transpose_rows($q) begin=0 parts=2 size=32 f16[128,32]",
    "%9 = concat_heads(%3, %4) heads=4 f32[T,72]",
    "%9 = take_rows(%3, %5) f32[R,64]",
    "%9 = mean_rows(%3, %2, %5) f32[R,64]",
    "%9 = slice(%3) begin=32 size=32 f32[T,32]",
    "%9 = sigmoid(%3) f32[T,64]",
    "%9, %19 = top_k(%3) k=64 normalize=0 i32[T,64], f32[T,64]",
    "%9 = expert_matmul(%3, $w, %90) experts=8 f32[T,24]",
    "%9 = expert_matmul(%3, $p, %90) experts=8 f32[T,24]",
    "%9, %19 = top_k(%3, $v64) group_best=2 groups=8 groups_used=2 k=16 "
    "least_sum=1e-20 normalize=1 i32[T,16], f32[T,16]",
    "%9, %19 = top_k(%3) k=2 margin=0.02 normalize=0 i32[T,2], f32[T,2]",
    "%9 = expert_add(%91, $v8, %90) experts=8 f32[T,3]",
    "%9 = expert_mul(%91, $v8, %90) experts=8 f32[T,3]",
    "%9 = clamped_gate(%3, %3) limit=7.0 slope=1.702 f32[T,64]",
    "%9 = slice_rows($q96) begin=5 parts=8 size=7 q4_0[56,64]",
    "%9 = slice_rows($v64) begin=0 parts=1 size=64 f32[64]",
    "%9 = fused_expert_matmul(%3, $experts, %90, $v512) experts=8 f32[T,192]",
    "%9 = fused_expert_matmul(%3, $experts, %90, $v512) "
    "epilogue=\"clamped_gate\" experts=8 limit=7.0 slope=1.5 f32[T,96]",
    "%9 = fused_matmul(%3, $w) epilogue=\"clamped_gate\" limit=7.0 slope=1.5 "
    "f32[T,32]",
    "%9 = weighted_sum(%3, %3) f32[T,1]",
    "%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"8,0,16,40,0,0,0,0\" "
    "f32[T,8]",
    "%9 = all_gather(%3) columns=128 rank=1 ranks=2 units=4 f32[T,128]",
    "%9 = all_gather(%3) columns=96 parts=2 rank=1 ranks=2 units=3 f32[T,96]",
    "%9 = l2_norm(%3) eps=1e-06 heads=8 f32[T,64]",
    "%9 = softplus(%3) f32[T,64]",
    "%9 = relu(%3) f32[T,64]",
    "%20, %21 = short_conv(%10, %3, $taps, %1, %2) f32[3,64]{window}, "
    "f32[T,64]",
    "%20, %21 = short_conv(%10, %3, $taps, %1, %2, $v64) activation=\"silu\" "
    "f32[3,64]{window}, f32[T,64]",
    "%20, %21 = delta_rule(%11, %4, %4, %3, %4, %4, %1, %2) "
    "key_heads=\"tiled\" scale=0.5 f32[8,8,8]{matrices}, f32[T,64]",
    "%20, %21 = delta_rule(%11, %3, %3, %3, %3, %4, %1, %2) "
    "key_heads=\"grouped\" scale=1.0 f32[8,8,8]{matrices}, f32[T,64]",
    "%20, %21 = selective_scan(%11, %3, %4, %4, %4, $v8, $v8, %1, %2) "
    "f32[8,8,8]{matrices}, f32[T,64]",
    "%20, %21 = selective_scan(%12, %3, %13, %13, %3, $a, $v64, %1, %2) "
    "f32[1,16,64]{matrices}, f32[T,64]",
    "%9 = quantize_rows(%3) q8r[T,64]",
    "%9 = rms_norm_quantize(%3, $v64) eps=1e-05 q8r[T,64]",
    "%9 = layer_norm_quantize(%3, $v64, $v64) eps=1e-05 q8r[T,64]",
    "%9 = rms_norm_gate(%3, $v64, %3) eps=1e-05 f32[T,64]",
    "%9 = rms_norm_gate(%3, $v8, %3) eps=1e-05 heads=8 f32[T,64]",
    "%9 = fused_matmul(%3, $q, $v64, $v64, $v64, %3) bias=1 "
    "epilogue=\"residual\" eps=1e-05 norm=\"layer\" norm_bias=1 quantize=1 "
    "f32[T,64]",
    "%9 = fused_matmul(%3, $w, $v64) eps=1e-05 norm=\"layer\" f32[T,64]",
    "%9 = fused_matmul(%3, $w) epilogue=\"gelu_gate\" f32[T,32]",
    "%9 = fused_matmul(%3, $q, $v64, $v64, %3) bias=1 "
    "epilogue=\"residual\" eps=1e-05 quantize=1 f32[T,64]",
    "%9 = fused_matmul(%3, $w) epilogue=\"silu_gate\" f32[T,32]",
    "%9 = fused_expert_matmul(%3, $experts, %90) epilogue=\"silu_gate\" "
    "experts=8 f32[T,96]",
    "%9 = silu_gate(%3, %3) f32[T,64]",
    "%9 = gelu_gate(%3, %3) f32[T,64]",
    "%9 = attention(%3, %6, %7, %1, %2) heads=2 scale=1.0 f32[T,64]",
    "%9 = attention(%3, %6, %7, %1, %2, %1) alibi=8.0 heads=2 scale=1.0 "
    "window=3 f32[T,64]",
    "%9 = attention(%3, %6, %6, %1, %2) heads=2 scale=1.0 value_dim=20 "
    "f32[T,40]",
    "%9 = rope_kv_write(%6, %3, %1, %2) base=1e4 head_dim=32 rope_dims=32 "
    "scale=1.0 style=\"halves\" f16[S,2,32]{keys}",
    "%9 = concat_rows($q, $q96) q4_0[160,64]",
    "%9 = interleave_rows($q, $q) q4_0[128,64]",
    "%9 = interleave_rows($q96) q4_0[96,64]",
    "%9 = pack_weight($q) layout=\"panel16\" q4_0[64,64]{panel16}",
};

TEST(OpRulesTest, LegalUsesOfEveryOpPass) {
  std::set<std::string> seen;
  for (const std::string line : kLegal) {
    EXPECT_EQ(Verdict(line), "") << line;
    const size_t op = line.find("= ") + 2;
    seen.insert(line.substr(op, line.find('(') - op));
  }
  for (const OpDef* op : AllOps()) {
    EXPECT_EQ(seen.count(op->name), 1u) << op->name << " has no line above";
  }
}

TEST(OpRulesTest, EveryOpWantsItsNumberOfOperands) {
  for (const OpDef* op : AllOps()) {
    if (std::string(op->name) == "gelu") continue;  // asks its attribute first
    const std::string verdict =
        op->name == std::string("fused_matmul")
            ? Verdict("%9 = fused_matmul(%3) f32[T,64]")
            : Verdict(absl::StrCat("%9 = ", op->name, "() f32[T,64]"));
    EXPECT_THAT(verdict, HasSubstr("operands, want ")) << op->name;
  }
}

struct Case {
  const char* line;
  const char* message;
};

const Case kWrong[] = {
    {"%9 = twist(%3) f32[T,64]", "there is no op 'twist'"},
    {"%9 = embed(%3, $q) f32[T,64]", "embed operand 0"},
    {"%9 = embed(%0, $v64) f32[T,64]", "embed wants a table [V,D]"},
    {"%9 = embed(%0, $q) f32[T,65]", "its rule says f32[T,64]"},
    {"%9 = rms_norm(%3, $v8) eps=1e-05 f32[T,64]",
     "rms_norm operand 1: want f32[64], found f32[8]"},
    {"%9 = rms_norm(%3, $v64) f32[T,64]", "rms_norm attribute eps"},
    {"%9 = rms_norm(%3, $v64) eps=\"1\" f32[T,64]", "rms_norm attribute eps"},
    {"%9 = rms_norm(%3, $v64) eps=inf f32[T,64]", "rms_norm attribute eps"},
    {"%9 = rms_norm(%3, $v64) eps=-1.0 f32[T,64]", "rms_norm attribute eps"},
    {"%9 = rms_norm(%0, $v64) eps=1e-05 f32[T,64]",
     "rms_norm operand 0: want a matrix of f32"},
    {"%9 = layer_norm(%3, $v64, $v8) eps=1e-05 f32[T,64]",
     "layer_norm operand 2: want f32[64]"},
    {"%9 = rms_norm(%3, $v8) eps=1e-05 heads=7 f32[T,64]",
     "rms_norm: [T,64] does not divide into 7 heads"},
    {"%9 = rms_norm(%3, $v8) eps=1e-05 heads=4 f32[T,64]",
     "rms_norm operand 1: want f32[16], found f32[8]"},
    {"%9 = rms_norm(%3, $v8) eps=1e-05 heads=0 f32[T,64]",
     "rms_norm attribute heads"},
    {"%9 = layer_norm(%3, $v8, $v64) eps=1e-05 heads=8 f32[T,64]",
     "layer_norm operand 2: want f32[8]"},
    {"%9 = rms_norm_quantize(%3, $v8) eps=1e-05 heads=8 q8r[T,64]",
     "rms_norm_quantize attribute heads: there is no such attribute: the op "
     "has eps"},
    {"%9 = rms_norm_gate(%3, $v64, %13) eps=1e-05 f32[T,64]",
     "rms_norm_gate: the gate is [T,16], want [T,64]"},
    {"%9 = layer_norm_quantize(%3, $v8) eps=1e-05 heads=8 q8r[T,64]",
     "layer_norm_quantize attribute heads: there is no such attribute: the op "
     "has eps"},
    {"%9 = scale(%3) f32[T,64]", "scale attribute factor"},
    {"%9 = scale(%3) factor=nan f32[T,64]", "scale attribute factor"},
    {"%9 = softcap(%3) cap=0.0 f32[T,64]", "softcap attribute cap"},
    {"%9 = softcap(%3) f32[T,64]", "softcap attribute cap"},
    {"%9 = matmul(%4, $w) f32[T,64]",
     "matmul cannot multiply f32[T,8] by f32[64,64]"},
    {"%9 = matmul(%3, $v64) f32[T,64]", "matmul wants a weight [N,K]"},
    {"%9 = matmul(%0, $w) f32[T,64]", "matmul cannot multiply i32[T]"},
    {"%9 = add(%3, %4) f32[T,64]", "add cannot join f32[T,64] and f32[T,8]"},
    {"%9 = mul(%3, $v8) f32[T,64]", "mul cannot join f32[T,64] and f32[8]"},
    {"%9 = silu(%0) i32[T]", "silu operand 0: want a matrix of f32"},
    {"%9 = gelu(%3) f32[T,64]", "gelu attribute approximation"},
    {"%9 = gelu(%3) approximation=\"fast\" f32[T,64]",
     "gelu attribute approximation: is \"fast\", want \"none\" or \"tanh\""},
    {"%9 = rope(%4, %1) base=1e4 head_dim=7 rope_dims=6 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "does not divide into heads of 7"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 rope_dims=7 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "with 7 rotated"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 rope_dims=9 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "does not divide into heads of 8 with 9 rotated"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=0 rope_dims=2 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "rope attribute head_dim"},
    {"%9 = rope(%4, %1) base=0.0 head_dim=8 rope_dims=8 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "rope attribute base: is 0.0, want a finite number above 0"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 rope_dims=8 scale=1.0 "
     "style=\"spiral\" f32[T,8]",
     "rope attribute style"},
    {"%9 = rope(%4, %1, $v8) base=1e4 head_dim=8 rope_dims=8 scale=1.0 "
     "style=\"halves\" f32[T,8]",
     "rope operand 2: want f32[4], found f32[8]"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 magnitude=0.0 rope_dims=8 "
     "scale=1.0 style=\"halves\" f32[T,8]",
     "rope attribute magnitude"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 ramp_begin=2.0 ramp_end=2.0 "
     "rope_dims=8 scale=1.0 style=\"halves\" f32[T,8]",
     "rope attribute ramp_end: is 2, want a finite number above ramp_begin, 2"},
    {"%9 = rope(%4, %1) base=1e4 head_dim=8 ramp_begin=2.0 "
     "rope_dims=8 scale=1.0 style=\"halves\" f32[T,8]",
     "rope attribute ramp_end: is 0"},
    {"%9 = kv_write(%6, %4, %1, %2) f16[S,2,32]{keys}",
     "kv_write cannot write [T,8] into f16[S,2,32]{keys}"},
    {"%9 = kv_write(%3, %3, %1, %2) f32[T,64]",
     "kv_write operand 0: want a state"},
    {"%9 = kv_write(%6, %3, %3, %2) f16[S,2,32]{keys}", "kv_write operand 2"},
    {"%9 = attention_scores(%3, %7, %1, %2) heads=2 scale=1.0 f32[T,2,S]",
     "attention_scores operand 1: want a state"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=3 scale=1.0 f32[T,3,S]",
     "3 heads do not share 2 KV heads evenly"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=4 scale=1.0 f32[T,4,S]",
     "query is [T,64], want 128 columns"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=0 scale=1.0 f32[T,2,S]",
     "attribute heads: is 0, want an integer from 1"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=nan f32[T,2,S]",
     "attribute scale: is nan, want a finite number"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 window=-1 "
     "f32[T,2,S]",
     "attribute window: is -1, want an integer from 0"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 softcap=-1.0 "
     "f32[T,2,S]",
     "attribute softcap: is -1.0, want a finite number of at least 0"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 "
     "temperature=-0.1 f32[T,2,S]",
     "attribute temperature: is -0.1, want a finite number of at least 0"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 "
     "temperature=0.1 temperature_period=0 f32[T,2,S]",
     "attribute temperature_period: is 0, want an integer from 1"},
    {"%9 = attention_scores(%3, %6, %1, %2) alibi=8.0 heads=2 scale=1.0 "
     "softcap=2.0 f32[T,2,S]",
     "attention_scores attribute alibi: does not go with softcap"},
    {"%9 = attention(%3, %6, %7, %1, %2, $v64) heads=2 scale=1.0 f32[T,64]",
     "attention operand 5"},
    {"%9 = attention(%3, %6, %7, %1, %2, %1, $v64) heads=2 scale=1.0 f32[T,64]",
     "attention operand 6"},
    {"%9 = mean_rows(%8, %2, %5) f32[R,4]", "mean_rows wants a matrix [T,D]"},
    {"%9 = mean_rows(%3, %2, %3) f32[R,64]", "mean_rows operand 2"},
    {"%9 = attention_values(%3, %7, %1, %2) f32[T,64]",
     "attention_values: probabilities are [T,64], want [T,H,S]"},
    {"%9 = attention_values(%8, %3, %1, %2) f32[T,128]",
     "attention_values operand 1: want a state"},
    {"%9 = attention_values(%8, %7, %1, %2) value_dim=24 f32[T,96]",
     "attention_values attribute value_dim: is 24, want keys that have as many "
     "numbers, found f16[S,2,32]{values}"},
    {"%9 = attention_values(%8, %6, %1, %2) value_dim=33 f32[T,132]",
     "attribute value_dim: is 33, want keys"},
    {"%9 = attention_scores(%3, %6, %1, %2) heads=2 scale=1.0 value_dim=8 "
     "f32[T,2,S]",
     "attention_scores attribute value_dim: it reads no values"},
    {"%9 = attention(%3, %7, %7, %1, %2) heads=2 scale=1.0 f32[T,64]",
     "attention operand 1: want a state"},
    {"%9 = attention(%3, %6, %7, %1, %2) heads=2 scale=1.0 value_dim=8 "
     "f32[T,16]",
     "attention attribute value_dim: is 8, want keys"},
    {"%9 = attention(%3, %6, %60, %1, %2) heads=2 scale=1.0 f32[T,32]",
     "attention: values that are keys differ from the keys in shape"},
    {"%9 = head_matmul(%3, $q16) heads=5 f32[T,12]",
     "head_matmul wants a weight [5*N,K], found f32[12,16]"},
    {"%9 = head_matmul(%3, $q16) heads=2 f32[T,12]",
     "head_matmul cannot multiply f32[T,64] by f32[12,16] for 2 heads"},
    {"%9 = head_matmul(%3, $v64) heads=1 f32[T,64]",
     "head_matmul wants a weight [1*N,K]"},
    {"%9 = transpose_rows($q16) begin=2 parts=4 size=2 f32[64,2]",
     "transpose_rows cannot take rows 2 to 3"},
    {"%9 = transpose_rows($v64) begin=0 parts=2 size=2 f32[2,2]",
     "transpose_rows wants a matrix"},
    {"%9 = concat_heads(%3, %4) heads=3 f32[T,72]",
     "concat_heads cannot join [T,64] and [T,8] by 3 heads"},
    {"%9 = concat_heads(%3, %8) heads=1 f32[T,72]",
     "concat_heads cannot join [T,64]"},
    {"%9 = take_rows(%8, %5) f32[R,4]", "take_rows wants a matrix [T,D]"},
    {"%9 = take_rows(%3, %3) f32[R,64]", "take_rows operand 1"},
    {"%9 = slice(%3) begin=64 size=1 f32[T,1]",
     "slice attribute size: is 1 from 64 on"},
    {"%9 = slice(%3) begin=60 size=5 f32[T,5]",
     "slice attribute size: is 5 from 60 on"},
    {"%9 = slice(%3) begin=-1 size=5 f32[T,5]", "slice attribute begin"},
    {"%9, %19 = top_k(%3) k=65 normalize=0 i32[T,65], f32[T,65]",
     "top_k attribute k: is 65, want an integer from 1 to 64"},
    {"%9, %19 = top_k(%3) k=0 normalize=0 i32[T,64], f32[T,64]",
     "top_k attribute k"},
    {"%9, %19 = top_k(%3) k=2 i32[T,2], f32[T,2]", "top_k attribute normalize"},
    {"%9, %19 = top_k(%8) k=2 normalize=0 i32[T,2], f32[T,2]",
     "top_k wants a matrix [M,E<=1024]"},
    {"%9 = top_k(%3) k=2 normalize=0 i32[T,2]", "has 1 results, want 2"},
    {"%9 = expert_matmul(%3, $w, %1) experts=8 f32[T,24]",
     "expert_matmul operand 2: want the ids of a top_k among 8 experts"},
    {"%9 = expert_matmul(%3, $w, %91) experts=8 f32[T,24]",
     "want the ids of a top_k"},
    {"%9 = expert_matmul(%3, $w, %90) experts=16 f32[T,12]",
     "want the ids of a top_k among 16 experts"},
    {"%9 = expert_matmul(%3, $w, %90) f32[T,24]",
     "expert_matmul attribute experts"},
    {"%9 = expert_matmul(%3, $v64, %90) experts=8 f32[T,24]",
     "expert_matmul wants a weight [8*N,K]"},
    {"%9 = expert_matmul(%4, $w, %90) experts=8 f32[T,24]",
     "expert_matmul cannot multiply f32[T,8] by f32[64,64] for 3 experts"},
    {"%9 = expert_matmul(%3, $w, %90) epilogue=\"silu_gate\" experts=8 "
     "f32[T,12]",
     "expert_matmul attribute epilogue: there is no such attribute"},
    {"%9 = fused_expert_matmul(%3, $experts, %90, %3) experts=8 f32[T,192]",
     "fused_expert_matmul operand 3: want f32[512]"},
    {"%9 = fused_expert_matmul(%3, $experts, %90) epilogue=\"residual\" "
     "experts=8 f32[T,192]",
     "fused_expert_matmul takes no residual"},
    {"%9 = fused_expert_matmul(%3, $experts, %90) epilogue=\"clamped_gate\" "
     "experts=8 f32[T,96]",
     "fused_expert_matmul clamped gate needs limit and slope above 0"},
    {"%9 = fused_matmul(%3, $w) epilogue=\"silu_gate\" limit=7.0 f32[T,32]",
     "fused_matmul has limit or slope but no clamped gate"},
    {"%9, %19 = top_k(%3) groups=7 k=2 normalize=0 i32[T,2], f32[T,2]",
     "top_k cannot choose 2 of 64 columns from 1 of 7 groups"},
    {"%9, %19 = top_k(%3) groups=8 groups_used=9 k=2 normalize=0 i32[T,2], "
     "f32[T,2]",
     "top_k cannot choose 2 of 64 columns from 9 of 8 groups"},
    {"%9, %19 = top_k(%3) groups=8 k=9 normalize=0 i32[T,9], f32[T,9]",
     "top_k cannot choose 9 of 64 columns from 1 of 8 groups"},
    {"%9, %19 = top_k(%3) group_best=9 groups=8 k=2 normalize=0 i32[T,2], "
     "f32[T,2]",
     "by the 9 best of each"},
    {"%9, %19 = top_k(%3, $v8) k=2 normalize=0 i32[T,2], f32[T,2]",
     "top_k operand 1: want f32[64]"},
    {"%9, %19 = top_k(%3, $v64) k=2 margin=0.02 normalize=0 i32[T,2], f32[T,2]",
     "top_k attribute margin: goes with neither a bias nor groups"},
    {"%9 = expert_add(%91, $v64, %90) experts=8 f32[T,3]",
     "expert_add operand 1: want f32[8]"},
    {"%9 = expert_mul(%3, $v8, %90) experts=8 f32[T,64]",
     "expert_mul cannot take [T,64] for 3 experts of each row"},
    {"%9 = expert_add(%91, $v8, %1) experts=8 f32[T,3]",
     "expert_add operand 2: want the ids of a top_k among 8 experts"},
    {"%9 = clamped_gate(%3, %4) limit=7.0 slope=1.5 f32[T,64]",
     "clamped_gate cannot join"},
    {"%9 = slice_rows($q96) begin=6 parts=8 size=7 q4_0[56,64]",
     "slice_rows cannot take rows 6 to 12 of each of 8 equal parts"},
    {"%9 = slice_rows($q96) begin=0 parts=7 size=1 q4_0[7,64]",
     "slice_rows cannot take rows 0 to 0 of each of 7 equal parts"},
    {"%9 = fused_expert_matmul(%3, $q, %90) epilogue=\"silu_gate\" experts=8 "
     "f32[T,12]",
     "gate needs whole panels of gate and up rows, found 8 rows"},
    {"%9 = weighted_sum(%3, $w) f32[T,1]",
     "weighted_sum cannot add parts of [T,64] with weights [64,64]"},
    {"%9 = weighted_sum(%3, %91) f32[T,21]", "weighted_sum cannot add parts"},
    {"%9 = all_gather(%3) columns=128 rank=2 ranks=2 units=4 f32[T,128]",
     "cannot cut 128 columns, 1 parts of 4 units, for rank 2 of 2"},
    {"%9 = all_gather(%3) columns=128 rank=0 ranks=5 units=4 f32[T,128]",
     "for rank 0 of 5"},
    {"%9 = all_gather(%3) columns=130 rank=0 ranks=2 units=4 f32[T,130]",
     "cannot cut 130 columns"},
    {"%9 = all_gather(%3) columns=96 rank=0 ranks=2 units=2 f32[T,96]",
     "rank 0 has 48 of 96 columns, found f32[T,64]"},
    {"%9 = all_gather(%0) columns=2 rank=0 ranks=2 units=2 i32[T]",
     "all_gather wants rows of f32 or rounded rows, found i32[T]"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"64\" f32[T,8]",
     "want scales f32[T,1]"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"8,0,16,39,0,0,0,0\" "
     "f32[T,8]",
     "lora_add a is f32[64,64], want f32[63,64]"},
    {"%9 = lora_add(%3, %3, $w, $v64x8, %4) ranks=\"8,0,16,40,0,0,0,0\" "
     "f32[T,64]",
     "lora_add b is f32[64,8], want f32[64,64]"},
    {"%9 = lora_add(%4, %3, $q, $v64x8, %4) ranks=\"8,0,16,40,0,0,0,0\" "
     "f32[T,8]",
     "lora_add a is q4_0[64,64]"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"8,0,16,-40,0,0,0,80\" "
     "f32[T,8]",
     "numbers from 0 on"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"8,0,,56,0,0,0,0\" "
     "f32[T,8]",
     "numbers from 0 on"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) "
     "ranks=\"9223372036854775807,1,0,0,0,0,0,0\" f32[T,8]",
     "numbers from 0 on"},
    {"%9 = lora_add(%4, %3, $w, $v64x8, %4) ranks=\"0,0,0,0,0,0,0,0\" "
     "f32[T,8]",
     "want one above 0"},
    {"%9 = quantize_rows(%4) q8r[T,8]",
     "rows of 8 elements, but q8r has blocks"},
    {"%9 = fused_matmul(%3, $q) epilogue=\"bow\" f32[T,64]",
     "fused_matmul attribute epilogue: is \"bow\", want"},
    {"%9 = fused_matmul(%3, $q) epilogue=\"residual\" f32[T,64]",
     "fused_matmul has 2 operands, its attributes ask for 3"},
    {"%9 = fused_matmul(%3, $w, $v64) eps=1e-05 quantize=1 f32[T,64]",
     "quantize=1 needs a norm and a quantised weight"},
    {"%9 = fused_matmul(%3, $q) quantize=1 f32[T,64]",
     "quantize=1 needs a norm and a quantised weight"},
    {"%9 = fused_matmul(%3, $q, %4) epilogue=\"residual\" f32[T,64]",
     "fused_matmul residual is f32[T,8], want f32[T,64]"},
    {"%9 = fused_matmul(%3, $q96) epilogue=\"silu_gate_quantize\" q8r[T,48]",
     "gate needs whole panels of gate and up rows, found 96 rows"},
    {"%9 = fused_matmul(%3, $w, $v64) eps=1e-05 norm=\"batch\" f32[T,64]",
     "fused_matmul attribute norm: is \"batch\", want"},
    {"%9 = fused_matmul(%3, $w, $v64, $v64) eps=1e-05 norm_bias=1 f32[T,64]",
     "norm_bias=1 needs a layer norm"},
    {"%9 = fused_matmul(%3, $w, $v64) norm_bias=1 norm=\"layer\" f32[T,64]",
     "norm_bias=1 needs a layer norm"},
    {"%9 = fused_matmul(%3, $w, $v64, $v8) eps=1e-05 norm=\"layer\" "
     "norm_bias=1 f32[T,64]",
     "fused_matmul operand 3: want f32[64]"},
    {"%9 = silu_gate(%3, $v64) f32[T,64]", "silu_gate cannot join"},
    {"%9 = gelu_gate(%3, $v64) f32[T,64]", "gelu_gate cannot join"},
    {"%9 = rope_kv_write(%6, %3, %1, %2) base=1e4 head_dim=16 rope_dims=16 "
     "scale=1.0 style=\"halves\" f16[S,2,32]{keys}",
     "rope_kv_write: head sizes differ"},
    {"%9 = concat_rows($q, $w) q4_0[128,64]", "concat_rows cannot join"},
    {"%9 = concat_rows($q, $p) q4_0[128,64]",
     "concat_rows operand 1: want a weight row after row"},
    {"%9 = interleave_rows($q, $q96) q4_0[160,64]",
     "interleave_rows wants two halves alike"},
    {"%9 = interleave_rows($v8) f32[8]",
     "interleave_rows wants two halves alike"},
    {"%9 = pack_weight($q) layout=\"heap\" q4_0[64,64]{heap}",
     "pack_weight: no layout 'heap' for q4_0[64,64]"},
    {"%9 = pack_weight($p) layout=\"panel16\" q4_0[64,64]{panel16}",
     "pack_weight operand 0: want a weight row after row"},
};

TEST(OpRulesTest, WrongUsesAreToldWithWhatIsWrong) {
  for (const Case& wrong : kWrong) {
    EXPECT_THAT(Verdict(wrong.line), HasSubstr(wrong.message)) << wrong.line;
  }
}

}  // namespace
}  // namespace weft
