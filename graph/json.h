// Graphs as JSON, for programs that look at them. One object:
//
//   {"name", "bounds": {"tokens","rows","context"},
//    "arena": {"bytes","lower_bound","sum_of_intermediates"}   once planned
//    "values": [{"id","kind","name","dtype","shape","layout","offset"}],
//    "nodes": [{"op","name","block","inputs","outputs","attributes",
//               "cost": {"bytes","operations"},   of one step, where known
//               "scratch_offset"}],
//    "outputs": [{"name","value"}]}
//
// Ids are those of the text form ("%3", "$blk.0.attn_q"); a dim is a number or
// "T", "R" or "S"; keys that say nothing (no layout, no offset yet, no block)
// are left out. A node's kernel is its attribute "kernel". The same graph gives
// the same bytes.
#pragma once

#include <string>

#include "graph/graph.h"
#include "graph/listing.h"

namespace weft {

// With a filter: the nodes shown and the values they touch, and
// "nodes_left_out".
std::string ToJson(const Graph& graph, const NodeFilter& show = nullptr,
                   const CostOf& cost = nullptr);

}  // namespace weft
