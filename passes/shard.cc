// Leaves of a graph what one rank of several computes (tensor parallelism).
//
//   %3 = matmul(%2, $gate)               %3 = matmul(%2, $gate)   q4_0[F/2,D]
//   %4 = silu(%3)                        %4 = silu(%3)
//   %5 = quantize_rows(%4)       ->      %5 = quantize_rows(%4)
//   %6 = matmul(%5, $down)               %6 = all_gather(%5) rank=0 ranks=2 ...
//                                        %7 = matmul(%6, $down)   q4_0[D/2,F]
//                                        %8 = all_gather(%7) ...
//
// Products are cut by output columns, attention and its cache by heads, experts
// by the columns of each. Every sum over K stays whole, so results are what one
// rank alone computes, to the bit. A value is either whole, and then every rank
// makes all of it, or cut, and then each rank has its own columns; it stays cut
// as far as its readers work on columns or heads by themselves, and is gathered
// where one wants it whole, after rounding where that can be: it is fewer
// bytes. What no rule below knows wants whole operands, so any graph can be
// sharded.
//
// What is cut alike is a group: it has so many equal units, of whose bounds all
// that read or make a value of the group approve; rank r has the units of
// ShareOf. A product may begin a group. Where a group has fewer units than
// there are ranks, its products stay whole.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/collectives.h"
#include "ops/fused_matmul.h"
#include "ops/op_table.h"
#include "ops/ops.h"
#include "passes/insert_before.h"
#include "passes/pass.h"

namespace weft {
namespace {

// Of products that are sliced into columns at once, one for each slice: joined
// weights (Q, K and V of some families) are cut each by itself then.
void SplitJoinedProducts(Graph& graph) {
  const std::vector<NodeId> order = graph.order();
  for (NodeId id : order) {
    if (!graph.node(id).Is(kSliceOp)) continue;
    const Node slice = graph.node(id);
    ValueId joined = slice.inputs[0];
    const std::vector<NodeId> users = graph.Users(joined);
    if (graph.IsOutput(joined) ||
        !std::all_of(users.begin(), users.end(), [&](NodeId user) {
          return graph.node(user).Is(kSliceOp);
        })) {
      continue;
    }
    ValueId bias = kNone;
    const NodeId sum = graph.ProducerOf(joined, kAddOp);
    if (sum != kNone && graph.IsWeight(graph.node(sum).inputs[1]) &&
        graph.OnlyUser(graph.node(sum).inputs[0]) == sum) {
      bias = graph.node(sum).inputs[1];
      joined = graph.node(sum).inputs[0];
      if (graph.value(bias).type.shape.rank() != 1) continue;
    }
    const NodeId product = graph.ProducerOf(joined, kMatmulOp);
    if (product == kNone || !graph.IsWeight(graph.node(product).inputs[1])) {
      continue;
    }
    const auto columns = slice.attributes.As<SliceAttributes>();
    const SliceRowsAttributes rows{1, columns.begin, columns.size};
    const ValueId weight = InsertBefore(
        graph, id,
        Node(kSliceRowsOp, {graph.node(product).inputs[1]}, rows, slice.name));
    const ValueId x = graph.node(product).inputs[0];
    if (bias == kNone) {
      graph.node(id).Become(kMatmulOp);
      graph.node(id).inputs = {x, weight};
    } else {
      const ValueId own_bias = InsertBefore(
          graph, id, Node(kSliceRowsOp, {bias}, rows, slice.name + ".bias"));
      const ValueId y =
          InsertBefore(graph, id, Node(kMatmulOp, {x, weight}, {}, slice.name));
      graph.node(id).Become(kAddOp);
      graph.node(id).inputs = {y, own_bias};
    }
  }
  graph.EraseDead();
}

class Sharder {
 public:
  Sharder(Graph& graph, const ShardOptions& shard)
      : graph_(graph), shard_(shard) {}

  void Run() {
    SplitJoinedProducts(graph_);
    while (!Analyse()) {
    }
    Rewrite();
  }

 private:
  struct Group {
    int parent = -1;  // of the group that it was joined with
    int64_t units = 0;
  };
  // A value: whole (group -1), or the columns of each of its equal parts are.
  struct Cut {
    int group = -1;
    int64_t parts = 1;
  };
  // What a node does with operands that are cut.
  struct Use {
    int group = -1;         // of its result; -1: all operands must be whole
    uint32_t kept_cut = 0;  // operands that it takes as they are
  };

  int Root(int group) const {
    while (groups_[group].parent >= 0) group = groups_[group].parent;
    return group;
  }
  int64_t Units(int group) const { return groups_[Root(group)].units; }
  int GroupOf(ValueId value) const {
    return cuts_[value].group < 0 ? -1 : Root(cuts_[value].group);
  }
  Share OwnShare(int group) const {
    return ShareOf(Units(group), shard_.rank, shard_.ranks);
  }
  // Of a number that is divided like the group.
  int64_t Own(int group, int64_t number) const {
    return number / Units(group) * OwnShare(group).size;
  }
  int64_t Columns(ValueId value) const {
    return graph_.value(value).type.shape[1].value;
  }

  // False, and no change, where no unit would be left.
  bool Constrain(int group, int64_t units) {
    Group& g = groups_[Root(group)];
    if (units <= 0) return false;
    g.units = std::gcd(g.units, units);
    return true;
  }
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    if (a == b) return;
    groups_[a].units = std::gcd(groups_[a].units, groups_[b].units);
    groups_[b].parent = a;
  }

  // --- What is cut.

  // Whether all that must be whole was known.
  bool Analyse();
  void Look(NodeId id);
  void LookAtProduct(NodeId id);
  void LookAtColumns(NodeId id);
  void LookAtAttention(NodeId id);
  void LookAtHeads(NodeId id, bool possible);
  void LookAtSoftmax(NodeId id);
  void LookAtHeadProduct(NodeId id);
  void FindWhatCannotBeGathered();

  void Keep(NodeId id, int group, std::initializer_list<int> operands,
            int64_t parts = 1) {
    for (int i : operands) uses_[id].kept_cut |= 1u << i;
    uses_[id].group = group;
    cuts_[graph_.node(id).outputs[0]] = {group, parts};
  }
  bool IsPlainWeight(ValueId value) const {
    const Value& v = graph_.value(value);
    return v.kind == ValueKind::kWeight && v.type.layout.empty() &&
           v.data.make == nullptr;
  }
  // A plain weight, or rows of each of `parts` parts of one.
  bool IsWeightOfParts(ValueId value, int64_t parts) const {
    if (IsPlainWeight(value)) return true;
    const Node* producer = graph_.Producer(value);
    return producer != nullptr && IsPlainWeight(producer->inputs[0]) &&
           (producer->Is(kSliceRowsOp) || producer->Is(kTransposeRowsOp)) &&
           producer->attributes.As<SliceRowsAttributes>().parts == parts;
  }
  bool FeedsRouter(ValueId value, int depth = 4) const;

  // --- What a rank has of it.

  void Rewrite();
  void RewriteNode(NodeId id);
  ValueId Gathered(ValueId value, NodeId before);
  ValueId OwnRows(ValueId weight, int group, NodeId before, int64_t parts);
  ValueId RowsOf(ValueId weight, int64_t begin, int64_t rows);

  Graph& graph_;
  const ShardOptions shard_;
  std::vector<Group> groups_;
  std::vector<Cut> cuts_;  // by value
  std::vector<Use> uses_;  // by node
  // Of products, scores and states, what must be whole.
  std::set<ValueId> whole_;
  std::vector<ValueId> begun_;     // products that began a group
  std::set<ValueId> conflicting_;  // what FindWhatCannotBeGathered found
  std::map<ValueId, ValueId> first_version_;
  std::map<ValueId, ValueId> gathered_;
  std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId> rows_;
};

// A router's numbers are few: every rank makes all of them.
bool Sharder::FeedsRouter(ValueId value, int depth) const {
  if (depth == 0) return false;
  for (NodeId user : graph_.Users(value)) {
    const Node& node = graph_.node(user);
    if (node.Is(kTopKOp)) return true;
    if ((node.Is(kSoftmaxOp) || node.Is(kSigmoidOp) || node.Is(kAddOp) ||
         node.Is(kSoftplusOp) || node.Is(kScaleOp)) &&
        Columns(node.outputs[0]) <= kMostRanksOfPlan &&
        FeedsRouter(node.outputs[0], depth - 1)) {
      return true;
    }
  }
  return false;
}

bool Sharder::Analyse() {
  groups_.clear();
  begun_.clear();
  conflicting_.clear();
  first_version_.clear();
  cuts_.assign(graph_.value_count(), {});
  uses_.assign(graph_.node_count(), {});
  for (NodeId id : graph_.order()) Look(id);
  FindWhatCannotBeGathered();
  const size_t known = whole_.size();
  for (ValueId product : begun_) {
    if (Units(cuts_[product].group) < shard_.ranks) whole_.insert(product);
  }
  whole_.insert(conflicting_.begin(), conflicting_.end());
  return whole_.size() == known;
}

// Columns that rounding takes together.
constexpr int64_t kBlock = 32;

// Columns of a result that are made by rows of a weight.
int64_t UnitsOfRows(int64_t rows, int64_t ranks) {
  if (rows % kBlock == 0 && rows / kBlock >= ranks) return rows / kBlock;
  return rows % kPanelRows == 0 ? rows / kPanelRows : 0;
}

void Sharder::LookAtProduct(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueId result = node.outputs[0];
  const bool experts = node.Is(kExpertMatmulOp);
  const ValueId weight = node.inputs[1];
  if (whole_.count(result) > 0 || FeedsRouter(result)) return;
  int64_t rows = graph_.value(weight).type.shape[0].value;
  int64_t parts = 1, units = 0;
  if (experts) {
    if (!IsPlainWeight(weight)) return;
    rows /= node.attributes.As<ExpertMatmulAttributes>().experts;
    parts = Columns(result) / rows;
    units = UnitsOfRows(rows, shard_.ranks);
  } else if (IsWeightOfParts(weight, 1)) {
    units = UnitsOfRows(rows, shard_.ranks);
  } else if (const Node* slice = graph_.Producer(weight);
             slice != nullptr && slice->Is(kSliceRowsOp) &&
             IsPlainWeight(slice->inputs[0])) {
    // Some rows of each head.
    const auto heads = slice->attributes.As<SliceRowsAttributes>();
    if (heads.size % kPanelRows == 0) units = heads.parts;
  }
  if (units == 0) return;
  groups_.push_back({-1, units});
  begun_.push_back(result);
  cuts_[result] = {static_cast<int>(groups_.size()) - 1, parts};
  uses_[id].group = cuts_[result].group;
}

// Ops that look at columns, or heads, one by one.
void Sharder::LookAtColumns(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueId x = node.inputs[0];
  const int group = GroupOf(x);
  if (group < 0) return;
  const int64_t parts = cuts_[x].parts;
  const int64_t columns = Columns(x) / parts;
  if (node.Is(kQuantizeRowsOp)) {
    if (columns % kBlock != 0 || !Constrain(group, columns / kBlock)) return;
  } else if (node.Is(kRopeOp)) {
    Constrain(group, columns / node.attributes.As<RopeAttributes>().head_dim);
  } else if (node.Is(kRmsNormOp) || node.Is(kLayerNormOp) ||
             node.Is(kL2NormOp)) {
    const int64_t heads = node.attributes.As<NormAttributes>().heads;
    if (heads < 2 || parts > 1) return;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!IsPlainWeight(node.inputs[i])) return;
    }
    Constrain(group, heads);
  } else if (node.Is(kExpertAddOp) || node.Is(kExpertMulOp)) {
    if (!IsPlainWeight(node.inputs[1])) return;
  } else if (node.inputs.size() > 1 && !node.Is(kTakeRowsOp)) {
    // Of two values, or of one and a vector.
    const ValueId other = node.inputs[1];
    if (IsWeightOfParts(other, 1)) {
      if (parts > 1 || graph_.value(other).type.shape.rank() != 1 ||
          graph_.value(other).type.shape[0].value != columns) {
        return;
      }
    } else {
      if (GroupOf(other) < 0 || cuts_[other].parts != parts ||
          Columns(other) != Columns(x)) {
        return;
      }
      Join(group, GroupOf(other));
      Keep(id, group, {0, 1}, parts);
      return;
    }
  }
  Keep(id, group, {0}, parts);
}

void Sharder::LookAtAttention(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueId q = node.inputs[0], keys = node.inputs[1],
                values = node.inputs[2];
  const auto attention = node.attributes.As<AttentionAttributes>();
  const int64_t kv_heads = graph_.value(keys).type.shape[1].value;
  const int key_group = GroupOf(keys), value_group = GroupOf(values);
  const int group = GroupOf(q);
  const bool sinks = node.inputs.size() > 6;
  const bool possible = group >= 0 && cuts_[q].parts == 1 &&
                        attention.alibi == 0 &&
                        (!sinks || IsPlainWeight(node.inputs[6]));
  if (possible && key_group >= 0 && value_group >= 0) {
    Join(group, key_group);
    Join(group, value_group);
    Constrain(group, kv_heads);
    Keep(id, group, {0, 1, 2});
    return;
  }
  if (possible && key_group < 0 && value_group < 0 && kv_heads == 1) {
    Constrain(group, attention.heads);
    Keep(id, group, {0});
    return;
  }
}

// Attention that is not fused: heads of scores and of probabilities are what
// columns are elsewhere. The second operand is the state of keys or values.
void Sharder::LookAtHeads(NodeId id, bool possible) {
  const Node& node = graph_.node(id);
  const int group = GroupOf(node.inputs[0]);
  const int state_group = GroupOf(node.inputs[1]);
  const int64_t kv_heads = graph_.value(node.inputs[1]).type.shape[1].value;
  if (!possible || group < 0 || cuts_[node.inputs[0]].parts > 1 ||
      whole_.count(node.outputs[0]) > 0) {
    return;
  }
  if (state_group >= 0) {
    Join(group, state_group);
    Constrain(group, kv_heads);
    Keep(id, group, {0, 1});
  } else if (kv_heads == 1) {
    Constrain(group, node.Is(kAttentionScoresOp)
                         ? node.attributes.As<AttentionAttributes>().heads
                         : Columns(node.inputs[0]));
    Keep(id, group, {0});
  }
}

// Of scores.
void Sharder::LookAtSoftmax(NodeId id) {
  const Node& node = graph_.node(id);
  const int group = GroupOf(node.inputs[0]);
  const bool sinks = node.inputs.size() > 1;
  if (group < 0 || graph_.value(node.inputs[0]).type.shape.rank() != 3 ||
      whole_.count(node.outputs[0]) > 0 ||
      (sinks && !IsPlainWeight(node.inputs[1]))) {
    return;
  }
  Keep(id, group, {0});
}

// Only rows of columns can be gathered. What else a reader wants whole is
// whole from the beginning: states, scores.
void Sharder::FindWhatCannotBeGathered() {
  for (NodeId id : graph_.order()) {
    const Node& node = graph_.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (GroupOf(input) < 0 || (uses_[id].kept_cut >> i & 1) != 0) continue;
      const auto state = first_version_.find(input);
      if (state != first_version_.end()) {
        conflicting_.insert(state->second);
      } else if (graph_.value(input).type.shape.rank() != 2) {
        conflicting_.insert(input);
      }
    }
  }
}

void Sharder::LookAtHeadProduct(NodeId id) {
  const Node& node = graph_.node(id);
  const int64_t heads = node.attributes.As<HeadAttributes>().heads;
  const int group = GroupOf(node.inputs[0]);
  if (group < 0 || cuts_[node.inputs[0]].parts > 1 ||
      !IsWeightOfParts(node.inputs[1], heads)) {
    return;
  }
  Constrain(group, heads);
  Keep(id, group, {0});
}

void Sharder::Look(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.Is(kMatmulOp) || node.Is(kExpertMatmulOp)) return LookAtProduct(id);
  for (const OpDef* op :
       {&kSiluOp, &kGeluOp, &kSigmoidOp, &kSoftplusOp, &kReluOp, &kScaleOp,
        &kSoftcapOp, &kAddOp, &kMulOp, &kClampedGateOp, &kRopeOp, &kRmsNormOp,
        &kLayerNormOp, &kL2NormOp, &kQuantizeRowsOp, &kTakeRowsOp,
        &kExpertAddOp, &kExpertMulOp}) {
    if (node.Is(*op)) return LookAtColumns(id);
  }
  if (node.Is(kAttentionOp)) return LookAtAttention(id);
  if (node.Is(kAttentionScoresOp)) {
    const auto scores = node.attributes.As<AttentionAttributes>();
    return LookAtHeads(id, scores.alibi == 0);
  }
  if (node.Is(kSoftmaxOp)) return LookAtSoftmax(id);
  if (node.Is(kAttentionValuesOp)) return LookAtHeads(id, true);
  if (node.Is(kHeadMatmulOp)) return LookAtHeadProduct(id);
  const ValueId x = node.inputs[0];
  if (node.Is(kKvWriteOp)) {
    const auto before = first_version_.find(x);
    const ValueId state = before == first_version_.end() ? x : before->second;
    first_version_[node.outputs[0]] = state;
    const int64_t heads = graph_.value(x).type.shape[1].value;
    const int group = GroupOf(node.inputs[1]);
    if (state != x) {
      // Written twice: whole.
      if (GroupOf(x) >= 0) conflicting_.insert(state);
      return;
    }
    if (group < 0 || heads < 2 || whole_.count(state) > 0 ||
        cuts_[node.inputs[1]].parts > 1) {
      return;
    }
    Constrain(group, heads);
    cuts_[state] = {group, 1};
    Keep(id, group, {0, 1});
  } else if (node.Is(kConcatHeadsOp)) {
    const ValueId other = node.inputs[1];
    const int64_t heads = node.attributes.As<HeadAttributes>().heads;
    if (GroupOf(x) < 0 || GroupOf(other) < 0 || cuts_[x].parts > 1 ||
        cuts_[other].parts > 1 || heads < 2) {
      return;
    }
    Join(GroupOf(x), GroupOf(other));
    Constrain(GroupOf(x), heads);
    Keep(id, GroupOf(x), {0, 1});
  } else if (node.Is(kWeightedSumOp)) {
    if (GroupOf(x) < 0 || GroupOf(node.inputs[1]) >= 0) return;
    Keep(id, GroupOf(x), {0});
  }
}

// Rows of a weight, which lie together, as a weight.
ValueId Sharder::RowsOf(ValueId weight, int64_t begin, int64_t rows) {
  const auto key = std::make_tuple(weight, begin, rows);
  const auto found = rows_.find(key);
  if (found != rows_.end()) return found->second;
  const Value whole = graph_.value(weight);
  ValueType type = whole.type;
  Shape shape{Dim::Number(rows)};
  if (type.shape.rank() == 2) shape.Append(type.shape[1]);
  type.shape = shape;
  WeightData data = whole.data;
  if (!data.bytes.empty()) {
    const int64_t row_bytes =
        static_cast<int64_t>(data.bytes.size()) / whole.type.shape[0].value;
    data.bytes = data.bytes.subspan(begin * row_bytes, rows * row_bytes);
  }
  return rows_[key] = graph_.AddWeight(
             graph_.FreeName(absl::StrCat(whole.name, ".rank")), type,
             std::move(data));
}

// The rows of a weight, or of each of its parts, that are the rank's own.
ValueId Sharder::OwnRows(ValueId weight, int group, NodeId before,
                         int64_t parts) {
  const Share share = OwnShare(group);
  const int64_t units = Units(group);
  const Node* slice = graph_.Producer(weight);
  if (slice == nullptr) {
    const int64_t part = graph_.value(weight).type.shape[0].value / parts;
    const int64_t begin = part / units * share.begin;
    const int64_t size = part / units * share.size;
    if (parts == 1) return RowsOf(weight, begin, size);
    return InsertBefore(
        graph_, before,
        Node(kSliceRowsOp, {weight}, SliceRowsAttributes{parts, begin, size},
             graph_.value(weight).name));
  }
  auto rows = slice->attributes.As<SliceRowsAttributes>();
  const ValueId whole = slice->inputs[0];
  if (rows.parts == 1) {
    return RowsOf(whole, rows.begin + rows.size / units * share.begin,
                  rows.size / units * share.size);
  }
  // Of the heads that are the rank's own.
  const int64_t head = graph_.value(whole).type.shape[0].value / rows.parts;
  const int64_t heads = rows.parts / units;
  Node own(
      *slice->op,
      {RowsOf(whole, head * heads * share.begin, head * heads * share.size)},
      {}, slice->name);
  rows.parts = heads * share.size;
  own.attributes = Attributes(rows);
  return InsertBefore(graph_, before, own);
}

ValueId Sharder::Gathered(ValueId value, NodeId before) {
  const auto found = gathered_.find(value);
  if (found != gathered_.end()) return found->second;
  const int group = GroupOf(value);
  const Node* producer = graph_.Producer(value);
  AllGatherAttributes gather;
  gather.rank = shard_.rank;
  gather.ranks = shard_.ranks;
  gather.units = Units(group);
  gather.parts = cuts_[value].parts;
  gather.columns = Columns(value) / OwnShare(group).size * gather.units;
  return gathered_[value] =
             InsertBefore(graph_, before,
                          Node(kAllGatherOp, {value}, gather, producer->name));
}

void Sharder::RewriteNode(NodeId id) {
  const Use use = uses_[id];
  for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
    const ValueId input = graph_.node(id).inputs[i];
    const bool known = input < static_cast<ValueId>(cuts_.size());
    if (known && GroupOf(input) >= 0 && (use.kept_cut >> i & 1) == 0) {
      const ValueId all = Gathered(input, id);
      graph_.node(id).inputs[i] = all;
    }
  }
  if (use.group < 0) return;
  const Node before = graph_.node(id);
  std::vector<ValueId> inputs = before.inputs;
  Attributes attributes = before.attributes;
  const auto own_vector = [&](size_t i, int64_t parts = 1) {
    if (inputs.size() > i) inputs[i] = OwnRows(inputs[i], use.group, id, parts);
  };
  if (before.Is(kMatmulOp)) {
    own_vector(1);
  } else if (before.Is(kExpertMatmulOp) || before.Is(kExpertAddOp) ||
             before.Is(kExpertMulOp)) {
    own_vector(1, attributes.As<ExpertMatmulAttributes>().experts);
  } else if (before.Is(kHeadMatmulOp) || before.Is(kConcatHeadsOp)) {
    auto heads = attributes.As<HeadAttributes>();
    heads.heads = Own(use.group, heads.heads);
    attributes = Attributes(heads);
    if (before.Is(kHeadMatmulOp)) own_vector(1);
  } else if (before.Is(kRmsNormOp) || before.Is(kLayerNormOp) ||
             before.Is(kL2NormOp)) {
    auto norm = attributes.As<NormAttributes>();
    for (size_t i = 1; i < inputs.size(); ++i) {
      // One vector for all heads, or a part of it for each.
      const int64_t size = graph_.value(inputs[i]).type.shape[0].value;
      const int64_t own = Columns(inputs[0]);
      if (size * norm.heads !=
          own / OwnShare(use.group).size * Units(use.group)) {
        own_vector(i);
      }
    }
    norm.heads = Own(use.group, norm.heads);
    attributes = Attributes(norm);
  } else if (before.Is(kAttentionOp) || before.Is(kAttentionScoresOp)) {
    auto attention = attributes.As<AttentionAttributes>();
    attention.heads = Own(use.group, attention.heads);
    attributes = Attributes(attention);
    if (before.Is(kAttentionOp)) own_vector(6);
  } else if (before.Is(kSoftmaxOp)) {
    own_vector(1);
  } else if ((before.Is(kAddOp) || before.Is(kMulOp)) &&
             (use.kept_cut & 2) == 0) {
    own_vector(1);
  }
  Node& node = graph_.node(id);
  node.inputs = inputs;
  node.attributes = attributes;
  const absl::StatusOr<std::vector<ValueType>> types =
      ResultTypes(graph_, node);
  if (!types.ok()) return;  // the verifier, which runs next, says why
  for (size_t i = 0; i < types->size(); ++i) {
    graph_.value(node.outputs[i]).type = (*types)[i];
  }
}

void Sharder::Rewrite() {
  for (ValueId id = 0; id < static_cast<ValueId>(cuts_.size()); ++id) {
    Value& value = graph_.value(id);
    if (value.kind != ValueKind::kState || GroupOf(id) < 0) continue;
    const Shape whole = value.type.shape;
    value.type.shape = Shape{
        whole[0], Dim::Number(Own(GroupOf(id), whole[1].value)), whole[2]};
  }
  const std::vector<NodeId> order = graph_.order();
  for (NodeId id : order) RewriteNode(id);
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId value = graph_.outputs()[i].second;
    if (GroupOf(value) < 0 || IsStateVersion(graph_, value)) continue;
    graph_.SetOutput(static_cast<int>(i), Gathered(value, kNone));
  }
  graph_.EraseDead();
  // What is left of a weight of which nothing else is read has its name.
  for (const auto& [rows, value] : rows_) {
    const ValueId whole = std::get<0>(rows);
    if (graph_.Users(whole).empty()) {
      std::swap(graph_.value(whole).name, graph_.value(value).name);
    }
  }
}

}  // namespace

absl::Status Shard(Graph& graph, const PassOptions& options) {
  if (options.shard.ranks > 1) Sharder(graph, options.shard).Run();
  return absl::OkStatus();
}

}  // namespace weft
