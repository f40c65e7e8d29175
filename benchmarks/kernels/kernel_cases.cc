#include "benchmarks/kernels/kernel_cases.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/dtype.h"
#include "graph/text_format.h"
#include "ops/op_table.h"
#include "ops/weight_layout.h"

namespace weft {
namespace {

// Holes: $D columns, $BOTH twice as many, $N inner, $TWICE, $H heads, $G KV
// heads, $E head_dim, $Q and $K columns of queries and keys, $V of each key as
// a value, $TYPE, $LAYOUT, $OP the entry's op. The last line is the node.
struct Template {
  const char* variant;  // of the op, where there is more than one
  const char* sources;
  const char* nodes;
};

constexpr char kX[] = "%x = input x f32[T,$D]\n";
constexpr char kTwo[] = "%x = input x f32[T,$N]\n%y = input y f32[T,$N]\n";
constexpr char kProduct[] =
    "$w = weight $TYPE[$N,$D]$LAYOUT\n$norm = weight f32[$D]\n"
    "%x = input x f32[T,$D]\n";
// Two experts, of which each row takes one.
constexpr char kExperts[] =
    "$w = weight $TYPE[$TWICE,$D]$LAYOUT\n%x = input x f32[T,$D]\n"
    "%router = input router f32[T,2]\n"
    "%1, %2 = top_k(%router) k=1 normalize=0 i32[T,1], f32[T,1]\n";
// Two heads.
constexpr char kHeads[] =
    "$w = weight $TYPE[$TWICE,$D]$LAYOUT\n%x = input x f32[T,$BOTH]\n";
constexpr char kBiasedExperts[] =
    "$w = weight $TYPE[$TWICE,$D]$LAYOUT\n$bias = weight f32[$TWICE]\n"
    "%x = input x f32[T,$D]\n%router = input router f32[T,2]\n"
    "%1, %2 = top_k(%router) k=1 normalize=0 i32[T,1], f32[T,1]\n";
// What a product gives for two experts of each row.
constexpr char kOfExperts[] =
    "$w = weight f32[$TWICE]\n%x = input x f32[T,$TWICE]\n"
    "%router = input router f32[T,2]\n"
    "%1, %2 = top_k(%router) k=2 normalize=0 i32[T,2], f32[T,2]\n";
constexpr char kScores[] = "%p = input p f32[T,$H,S]\n";
constexpr char kAttention[] =
    "%q = input q f32[T,$Q]\n%p = input p f32[T,$H,S]\n"
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%k = state keys $TYPE[S,$G,$E]{keys}\n"
    "%v = state values $TYPE[S,$G,$E]{values}\n";
constexpr char kBothWays[] =
    "%q = input q f32[T,$Q]\n"
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%last = input last_positions i32[T]\n"
    "%k = state keys $TYPE[S,$G,$E]{keys}\n"
    "%v = state values $TYPE[S,$G,$E]{values}\n";
constexpr char kSinks[] =
    "$sinks = weight f32[$H]\n%q = input q f32[T,$Q]\n"
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%k = state keys $TYPE[S,$G,$E]{keys}\n"
    "%v = state values $TYPE[S,$G,$E]{values}\n";
constexpr char kRope[] =
    "%x = input x f32[T,$K]\n%positions = input positions i32[T]\n";
constexpr char kRotated[] =
    "%x = input x f32[T,$K]\n"
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%k = state keys $TYPE[S,$G,$E]{keys}\n"
    "%v = state values $TYPE[S,$G,$E]{values}\n";
// Of sequences that do not grow without bounds, whatever the numbers.
constexpr char kRecurrent[] =
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%x = input x f32[T,$Q]\n%keys = input keys f32[T,$K]\n"
    "%queries = input queries f32[T,$K]\n"
    "%gates = input gates f32[T,$H]\n%key_gates = input key_gates f32[T,$Q]\n"
    "%s = state matrices f32[$H,$E,$E]{matrices}\n"
    "$a = weight f32[$H]\n$d = weight f32[$H]\n"
    "%k = l2_norm(%keys) eps=1e-06 heads=$G f32[T,$K]\n"
    "%q = l2_norm(%queries) eps=1e-06 heads=$G f32[T,$K]\n"
    "%beta = sigmoid(%gates) f32[T,$H]\n"
    "%forget = scale(%beta) factor=-1.0 f32[T,$H]\n"
    "%key_beta = sigmoid(%key_gates) f32[T,$Q]\n"
    "%key_forget = scale(%key_beta) factor=-1.0 f32[T,$Q]\n";
constexpr char kConv[] =
    "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
    "%x = input x f32[T,$D]\n%s = state window f32[3,$D]{window}\n"
    "$taps = weight f32[4,$D]\n$bias = weight f32[$D]\n";
constexpr char kWeights[] =
    "$w = weight $TYPE[$N,$D]\n$other = weight $TYPE[$N,$D]\n";

#define WEFT_ROPE "base=1e4 head_dim=$E rope_dims=$E scale=1.0 style="

constexpr Template kTemplates[] = {
    // Every element-wise op that has no attributes.
    {"", kX, "%1 = $OP(%x) f32[T,$D]"},
    {"", kTwo, "%1 = $OP(%x, %y) f32[T,$N]"},
    {"repeated", "%x = input x f32[T,$N]\n$row = weight f32[$N]\n",
     "%1 = $OP(%x, $row) f32[T,$N]"},
    {"", "$w = weight $TYPE[$N,$D]$LAYOUT\n%ids = input ids i32[T]\n",
     "%1 = embed(%ids, $w) f32[T,$D]"},
    {"", kProduct, "%1 = matmul(%x, $w) f32[T,$N]"},
    {"", kProduct,
     "%1 = quantize_rows(%x) q8r[T,$D]\n%2 = matmul(%1, $w) f32[T,$N]"},
    {"gate", kProduct,
     "%1 = fused_matmul(%x, $w, $norm) epilogue=\"silu_gate\" eps=1e-05 "
     "f32[T,$HALF]"},
    {"gate", kProduct,
     "%1 = fused_matmul(%x, $w, $norm) epilogue=\"silu_gate_quantize\" "
     "eps=1e-05 quantize=1 q8r[T,$HALF]"},
    {"", kExperts, "%3 = expert_matmul(%x, $w, %1) experts=2 f32[T,$N]"},
    {"", kExperts,
     "%3 = quantize_rows(%x) q8r[T,$D]\n"
     "%4 = expert_matmul(%3, $w, %1) experts=2 f32[T,$N]"},
    {"gate", kExperts,
     "%3 = fused_expert_matmul(%x, $w, %1) epilogue=\"silu_gate\" experts=2 "
     "f32[T,$HALF]"},
    {"gate", kExperts,
     "%3 = quantize_rows(%x) q8r[T,$D]\n"
     "%4 = fused_expert_matmul(%3, $w, %1) epilogue=\"silu_gate_quantize\" "
     "experts=2 q8r[T,$HALF]"},
    {"clamped", kBiasedExperts,
     "%3 = fused_expert_matmul(%x, $w, %1, $bias) epilogue=\"clamped_gate\" "
     "experts=2 limit=7.0 slope=1.702 f32[T,$HALF]"},
    {"clamped", kBiasedExperts,
     "%3 = quantize_rows(%x) q8r[T,$D]\n"
     "%4 = fused_expert_matmul(%3, $w, %1, $bias) "
     "epilogue=\"clamped_gate_quantize\" experts=2 limit=7.0 slope=1.702 "
     "q8r[T,$HALF]"},
    {"", kOfExperts, "%3 = expert_add(%x, $w, %1) experts=2 f32[T,$TWICE]"},
    {"", kOfExperts, "%3 = expert_mul(%x, $w, %1) experts=2 f32[T,$TWICE]"},
    {"", kTwo, "%1 = clamped_gate(%x, %y) limit=0.5 slope=1.5 f32[T,$N]"},
    {"", kHeads, "%1 = head_matmul(%x, $w) heads=2 f32[T,$TWICE]"},
    {"", kHeads,
     "%1 = quantize_rows(%x) q8r[T,$BOTH]\n"
     "%2 = head_matmul(%1, $w) heads=2 f32[T,$TWICE]"},
    {"", "%x = input x f32[T,$BOTH]\n%y = input y f32[T,$TWICE]\n",
     "%1 = concat_heads(%x, %y) heads=2 f32[T,$JOINED]"},
    {"", "%x = input x f32[T,64]\n",
     "%1, %2 = top_k(%x) k=4 normalize=1 i32[T,4], f32[T,4]"},
    {"groups", "$b = weight f32[64]\n%x = input x f32[T,64]\n",
     "%1, %2 = top_k(%x, $b) group_best=2 groups=8 groups_used=3 k=4 "
     "normalize=0 i32[T,4], f32[T,4]"},
    {"mixer", "%x = input x f32[T,64]\n",
     "%1, %2 = top_k(%x) k=2 margin=0.02 normalize=0 i32[T,2], f32[T,2]"},
    {"", "%x = input x f32[T,$TWICE]\n%p = input p f32[T,2]\n",
     "%1 = weighted_sum(%x, %p) f32[T,$N]"},
    {"", kAttention,
     "%1 = attention(%q, %k, %v, %positions, %sequence) heads=$H scale=0.125 "
     "f32[T,$Q]"},
    {"latent", kAttention,
     "%1 = attention(%q, %k, %k, %positions, %sequence) heads=$H scale=0.125 "
     "value_dim=$V f32[T,$L]"},
    {"both_ways", kBothWays,
     "%1 = attention(%q, %k, %v, %last, %sequence, %positions) alibi=8.0 "
     "heads=$H scale=0.125 f32[T,$Q]"},
    {"window_both_ways", kBothWays,
     "%1 = attention(%q, %k, %v, %last, %sequence, %positions) heads=$H "
     "scale=0.125 window=5 f32[T,$Q]"},
    {"sinks", kSinks,
     "%1 = attention(%q, %k, %v, %positions, %sequence, %positions, $sinks) "
     "heads=$H "
     "scale=0.125 chunk=48 f32[T,$Q]"},
    {"", kAttention,
     "%1 = attention_scores(%q, %k, %positions, %sequence) heads=$H "
     "scale=0.125 f32[T,$H,S]"},
    {"both_ways", kBothWays,
     "%1 = attention_scores(%q, %k, %last, %sequence, %positions) alibi=8.0 "
     "heads=$H scale=0.125 window=5 f32[T,$H,S]"},
    {"scores", kScores, "%1 = softmax(%p) f32[T,$H,S]"},
    {"sinks", "$sinks = weight f32[$H]\n%p = input p f32[T,$H,S]\n",
     "%1 = softmax(%p, $sinks) f32[T,$H,S]"},
    {"", kAttention,
     "%1 = attention_values(%p, %v, %positions, %sequence) f32[T,$Q]"},
    {"latent", kAttention,
     "%1 = attention_values(%p, %k, %positions, %sequence) value_dim=$V "
     "f32[T,$L]"},
    {"", "$w = weight f32[$D]\n%x = input x f32[T,$D]\n",
     "%1 = rms_norm(%x, $w) eps=1e-05 f32[T,$D]"},
    {"plain", kX, "%1 = rms_norm(%x) eps=1e-05 f32[T,$D]"},
    {"",
     "$w = weight f32[$E]\n%x = input x f32[T,$Q]\n"
     "%gate = input gate f32[T,$Q]\n",
     "%1 = rms_norm_gate(%x, $w, %gate) eps=1e-05 heads=$H f32[T,$Q]"},
    {"", "$w = weight f32[$D]\n%x = input x f32[T,$D]\n",
     "%1 = layer_norm(%x, $w, $w) eps=1e-05 f32[T,$D]"},
    {"", "$w = weight f32[$D]\n%x = input x f32[T,$D]\n",
     "%1 = rms_norm_quantize(%x, $w) eps=1e-05 q8r[T,$D]"},
    {"", "$w = weight f32[$D]\n%x = input x f32[T,$D]\n",
     "%1 = layer_norm_quantize(%x, $w, $w) eps=1e-05 q8r[T,$D]"},
    {"", kX, "%1 = quantize_rows(%x) q8r[T,$D]"},
    {"", kX, "%1 = scale(%x) factor=2.0 f32[T,$D]"},
    {"", kX, "%1 = softcap(%x) cap=30.0 f32[T,$D]"},
    {"erf", kTwo, "%1 = gelu(%x) approximation=\"none\" f32[T,$N]"},
    {"tanh", kTwo, "%1 = gelu(%x) approximation=\"tanh\" f32[T,$N]"},
    {"", "%x = input x f32[T,$D]\n%rows = input rows i32[R]\n",
     "%1 = take_rows(%x, %rows) f32[R,$D]"},
    {"",
     "%x = input x f32[T,$D]\n%sequence = input sequence i32[T]\n"
     "%rows = input rows i32[R]\n",
     "%1 = mean_rows(%x, %sequence, %rows) f32[R,$D]"},
    {"",
     "$a = weight f32[12,$D]\n$b = weight f32[12,$N]\n"
     "%x = input x f32[T,$D]\n%y = input y f32[T,$N]\n"
     "%scales = input scales f32[T,3]\n",
     "%1 = lora_add(%y, %x, $a, $b, %scales) ranks=\"8,0,4\" f32[T,$N]"},
    {"", kX,
     "%1 = all_gather(%x) columns=$BOTH rank=1 ranks=2 units=2 f32[T,$BOTH]"},
    {"rounded", kX,
     "%q = quantize_rows(%x) q8r[T,$D]\n"
     "%1 = all_gather(%q) columns=$BOTH rank=0 ranks=2 units=2 q8r[T,$BOTH]"},
    {"halves", kRope,
     "%1 = rope(%x, %positions) " WEFT_ROPE "\"halves\" f32[T,$K]"},
    {"interleaved", kRope,
     "%1 = rope(%x, %positions) " WEFT_ROPE "\"interleaved\" f32[T,$K]"},
    {"keys", kRotated,
     "%1 = kv_write(%k, %x, %positions, %sequence) $TYPE[S,$G,$E]{keys}"},
    {"values", kRotated,
     "%1 = kv_write(%v, %x, %positions, %sequence) $TYPE[S,$G,$E]{values}"},
    {"", kRotated,
     "%1 = rope_kv_write(%k, %x, %positions, %sequence) " WEFT_ROPE
     "\"interleaved\" $TYPE[S,$G,$E]{keys}"},
    {"", kConv,
     "%1, %2 = short_conv(%s, %x, $taps, %positions, %sequence) "
     "f32[3,$D]{window}, f32[T,$D]"},
    {"silu", kConv,
     "%1, %2 = short_conv(%s, %x, $taps, %positions, %sequence, $bias) "
     "activation=\"silu\" f32[3,$D]{window}, f32[T,$D]"},
    {"tiled", kRecurrent,
     "%1, %2 = delta_rule(%s, %q, %k, %x, %forget, %beta, %positions, "
     "%sequence) key_heads=\"tiled\" scale=0.5 f32[$H,$E,$E]{matrices}, "
     "f32[T,$Q]"},
    {"by_key", kRecurrent,
     "%1, %2 = delta_rule(%s, %q, %k, %x, %key_forget, %beta, %positions, "
     "%sequence) key_heads=\"grouped\" scale=1.0 f32[$H,$E,$E]{matrices}, "
     "f32[T,$Q]"},
    {"", kRecurrent,
     "%1, %2 = selective_scan(%s, %x, %k, %q, %beta, $a, $d, %positions, "
     "%sequence) f32[$H,$E,$E]{matrices}, f32[T,$Q]"},
    {"by_value",
     "%positions = input positions i32[T]\n%sequence = input sequence i32[T]\n"
     "%x = input x f32[T,$N]\n%gates = input gates f32[T,$N]\n"
     "%b = input b f32[T,16]\n%c = input c f32[T,16]\n"
     "%s = state matrices f32[1,16,$N]{matrices}\n"
     "$a = weight f32[16,$N]\n$d = weight f32[$N]\n"
     "%dt = sigmoid(%gates) f32[T,$N]\n",
     "%1, %2 = selective_scan(%s, %x, %b, %c, %dt, $a, $d, %positions, "
     "%sequence) f32[1,16,$N]{matrices}, f32[T,$N]"},
    {"heads", kRope, "%1 = l2_norm(%x) eps=1e-06 heads=$G f32[T,$K]"},
    {"", kWeights, "%1 = slice_rows($w) begin=0 parts=2 size=8 $TYPE[16,$D]"},
    {"", kWeights,
     "%1 = transpose_rows($w) begin=0 parts=1 size=8 $TYPE[$D,8]"},
    {"", kWeights, "%1 = concat_rows($w, $other) $TYPE[$TWICE,$D]"},
    {"", kWeights, "%1 = interleave_rows($w, $other) $TYPE[$TWICE,$D]"},
    {"", kWeights,
     "%1 = pack_weight($w) layout=\"panel16\" "
     "$TYPE[$N,$D]{panel16}"},
};

#undef WEFT_ROPE

// Makes every input of such a line a window into a wider one.
std::string Widened(absl::string_view sources, int64_t around) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(sources, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(
        absl::StripSuffix(line, "]"), absl::MaxSplits(" f32[T,", 1));
    int64_t columns;
    if (!absl::StrContains(line, " = input ") || words.size() < 2 ||
        !absl::SimpleAtoi(words[1], &columns)) {
      absl::StrAppend(&text, line, "\n");
      continue;
    }
    const absl::string_view name = line.substr(0, line.find(' '));
    absl::StrAppend(&text, "%wide_", words[0].substr(1), " f32[T,",
                    columns + around, "]\n", name, " = slice(%wide_",
                    name.substr(1), ") begin=", around / 2, " size=", columns,
                    " f32[T,", columns, "]\n");
  }
  return text;
}

// Of keys that are values: less than all of them, where there are more.
int64_t ValueDimOf(const CaseSizes& s) { return s.head_dim - s.head_dim / 9; }

std::string Fill(const Template& form, const std::string& op, int64_t tokens,
                 DType type, absl::string_view layout, const CaseSizes& s) {
  const std::string text = absl::StrCat(
      "graph kernel tokens<=", tokens, " rows<=", tokens,
      " context<=", s.context, "\n", form.sources, form.nodes, "\n");
  const std::string filled = absl::StrReplaceAll(
      text, {{"$OP", op},
             {"$TYPE", Info(type).name},
             {"$LAYOUT", layout.empty() ? "" : absl::StrCat("{", layout, "}")},
             {"$D", absl::StrCat(s.columns)},
             {"$N", absl::StrCat(s.inner)},
             {"$HALF", absl::StrCat(s.inner / 2)},
             {"$TWICE", absl::StrCat(s.inner * 2)},
             {"$BOTH", absl::StrCat(s.columns * 2)},
             {"$JOINED", absl::StrCat((s.columns + s.inner) * 2)},
             {"$V", absl::StrCat(ValueDimOf(s))},
             {"$L", absl::StrCat(s.heads * ValueDimOf(s))},
             {"$H", absl::StrCat(s.heads)},
             {"$G", absl::StrCat(s.kv_heads)},
             {"$E", absl::StrCat(s.head_dim)},
             {"$Q", absl::StrCat(s.heads * s.head_dim)},
             {"$K", absl::StrCat(s.kv_heads * s.head_dim)}});
  return s.around == 0 ? filled : Widened(filled, s.around);
}

}  // namespace

std::vector<KernelCase> CasesOf(const KernelEntry& entry, int64_t tokens,
                                const CaseSizes& sizes, std::string* why) {
  std::vector<KernelCase> cases;
  *why = "benchmarks/kernels/kernel_cases.cc has no line for its op";
  for (const Template& form : kTemplates) {
    const bool typed = absl::StrContains(form.sources, "$TYPE");
    const bool laid_out = absl::StrContains(form.sources, "$LAYOUT");
    for (const DTypeInfo& type : AllDTypes()) {
      if (!typed && type.type != DType::kF32) continue;
      for (const WeightLayout& layout : AllWeightLayouts()) {
        if (!laid_out && layout.name[0] != '\0') continue;
        absl::StatusOr<Graph> graph = ParseGraph(
            Fill(form, entry.op(), tokens, type.type, layout.name, sizes));
        if (!graph.ok()) continue;
        const Node& node = graph->node(graph->order().back());
        if (!entry.Computes(node)) continue;
        graph->AddOutput("y", node.outputs[0]);
        // Combinations that ops do not take: not the entry's business.
        if (!VerifyGraph(*graph).ok()) continue;
        std::string refusal = entry.Refuses({*graph, node, {entry.isa()}});
        if (!refusal.empty()) {
          // Not that it is for another type.
          if (!typed || absl::StrContains(entry.name(),
                                          absl::StrCat("_", type.name, "_"))) {
            *why = std::move(refusal);
          }
          continue;
        }
        std::string name = entry.name();
        for (const absl::string_view part :
             {typed ? absl::string_view(type.name) : "",
              absl::string_view(layout.name),
              absl::string_view(form.variant)}) {
          if (part.empty() || part == entry.weight_layout() ||
              absl::StrContains(entry.name(), absl::StrCat("_", part, "_"))) {
            continue;
          }
          absl::StrAppend(&name, "/", part);
        }
        // Of an entry that takes floats and quantised rows, the latter come
        // second.
        for (const KernelCase& other : cases) {
          if (other.name == name) absl::StrAppend(&name, "/q8r");
        }
        cases.push_back({std::move(name), &entry, *std::move(graph), tokens});
      }
    }
  }
  return cases;
}

}  // namespace weft
