// A program at one or more points of the pipeline, as the data of an html page.
//
// One JSON object; tables keep it small, since from point to point most of a
// graph stays, and blocks are alike:
//
//   strings     names, types and labels, each once
//   attributes  [name, value, name, value, ...]
//   refusals    [[kernel, reason], ...]: kernels tried before the chosen one
//   values      [id, kind, name, type, bytes, offset, [source names]]
//   nodes       [id, op, name, [inputs], [outputs], attributes, refusals,
//                bytes, operations, scratch offset]
//   points      {"label", "nodes": [[first record, records, first step]...],
//                "total": nodes of the whole graph, "values": [records],
//                "outputs": [[name, value id]...], "arena": [bytes, lower
//                bound, sum], "buffers": [[value id, node id, offset, bytes,
//                first step, last step]...]}
//
// Ids of values and nodes stay the same from point to point: what has the same
// kind or op and the same name is the same, the second of that name the second.
// A record is one form of a value or node: one that a pass alters gets a new
// record with the old id. A point lists the value records that are new in it;
// those of earlier points hold on. -1 stands for none; an offset or bytes are
// in bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/listing.h"
#include "nlohmann/json.hpp"
#include "ops/kernels/kernel_table.h"

namespace weft {

// JSON that may stand in a <script> element, whatever is in its strings; what
// is no UTF-8 becomes U+FFFD.
std::string ScriptJson(const nlohmann::json& json);

class ProgramData {
 public:
  // `title` is for people. With options, the kernels that were refused are
  // told. With a filter, only these nodes are shown.
  ProgramData(std::string title, std::optional<KernelOptions> options,
              NodeFilter show);

  // The next point. The graph is verified.
  void Add(const std::string& label, const Graph& graph);

  nlohmann::json ToJson() const;

 private:
  // Entries that are stored once.
  class Table {
   public:
    int Index(const nlohmann::json& entry);
    const nlohmann::json& entries() const { return entries_; }

   private:
    std::map<std::string, int> index_;
    nlohmann::json entries_ = nlohmann::json::array();
  };

  void NameAll(const Graph& graph);
  std::vector<std::string> SourcesOf(const std::string& weight) const;
  int Record(const Graph& graph, ValueId id);
  int Record(const Graph& graph, NodeId id, const Node& node);
  nlohmann::json Buffers(const Graph& graph,
                         const std::vector<bool>& shown) const;

  const std::string title_;
  const std::optional<KernelOptions> options_;
  const NodeFilter show_;
  Graph last_;
  // The page's ids: by what makes a value or node the same, and by id in the
  // graph at hand.
  std::map<std::string, int> ids_;
  std::vector<int> value_ids_, node_ids_;
  // By the page's id of a value: its record now.
  std::map<int, int> value_records_;
  // By the name of a weight that passes made: the weights it was made of.
  std::map<std::string, std::vector<std::string>> sources_;
  Table strings_, attributes_, refusals_, values_, nodes_;
  nlohmann::json points_ = nlohmann::json::array();
};

}  // namespace weft
