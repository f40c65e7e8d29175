// Graphs as text, one line per value or node, for reading, diffing and tests.
//
//   graph llama tokens<=512 rows<=512 context<=4096
//     $token_embd = weight  q8_0[2048,256]
//     %0 = input ids  i32[T]
//     %1 = state blk.0.k  f16[S,4,32]{keys}
//     %2 = embed(%0, $token_embd)  f32[T,256]  : token_embd
//     %3 = rms_norm(%2, $norm) eps=1e-05  f32[T,256]@0  : blk.0.attn_norm
//     output logits = %9
//
// A value's type is dtype[dims], {layout} when it is not row after row, @offset
// once it has a place in the arena; a node's scratch memory is scratch@offset.
// What follows " : " is the node's name. Comments run from # to the end of the
// line. Weight bytes are not part of the text. Numbers are given in order of
// appearance, so two dumps of one graph are equal and an edit changes few
// lines.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/graph.h"
#include "graph/listing.h"

namespace weft {

struct DumpOptions {
  // Comments stand in place of the nodes that are not shown, and sources that
  // no shown node reads are left out: for reading, Parse may not take it.
  NodeFilter show;
  // By value, instead of NumberValues(graph): so that two graphs can give one
  // number to what they have in common.
  const std::vector<int>* numbers = nullptr;
};

std::string Dump(const Graph& graph, const DumpOptions& options = {});

// The exact inverse: Dump(*Parse(Dump(g))) == Dump(g). The text is untrusted:
// any input gives a graph or an error with the line's number. Attributes are
// those of their op; an op that `find` does not know is kept with what stands
// there (OpSchema::known). The result is not yet verified (graph/verify.h).
// Graphs of weft's ops: ParseGraph (ops/op_table.h).
absl::StatusOr<Graph> Parse(absl::string_view text, OpLookup find);

// "eps=1e-05", strings quoted where needed.
std::string FormatAttribute(absl::string_view name,
                            const AttributeValue& value);

}  // namespace weft
