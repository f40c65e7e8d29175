#include "loaders/architectures/next_token_block.h"

#include "graph/next_token_block.h"
#include "loaders/architectures/blocks.h"

namespace weft {
namespace {

// The block's own matrix, or the model's.
ValueId OwnMatrix(ModelBuilder& m, const std::string& own,
                  const std::string& other) {
  const int64_t rows = m.config.vocabulary_size;
  const int64_t columns = m.config.embedding_length;
  const ValueId matrix = m.OptionalMatrix(own, rows, columns);
  return matrix != kNone ? matrix : m.OptionalMatrix(other, rows, columns);
}

}  // namespace

void NextTokenBlock(
    ModelBuilder& m, HandsOn hands_on,
    const std::function<ValueId(int64_t block, ValueId x)>& block) {
  const ModelConfig& c = m.config;
  const int64_t d = c.embedding_length;
  const std::string blk = BlockPrefix(c.block_count) + "nextn.";
  const ValueId table = OwnMatrix(m, blk + "embed_tokens", "token_embd");
  m.Name(blk + "embed_tokens");
  const ValueId token = RmsNorm(m, blk + "enorm", m.Embed(m.ids, table));
  const ValueId before = RmsNorm(m, blk + "hnorm", m.previous_hidden);
  m.Name(blk + "joined");
  const ValueId joined = m.ConcatHeads(token, before);
  ValueId x = m.Linear(blk + "eh_proj", joined, d, 2 * d);
  if (!m.ok()) return;
  x = OutputRows(m, block(c.block_count, x));
  if (!m.ok()) return;
  const bool own_norm = m.HasTensor(blk + "shared_head_norm.weight");
  const ValueId normed =
      RmsNorm(m, own_norm ? blk + "shared_head_norm" : "output_norm", x);
  m.graph().AddOutput(kBlockHidden,
                      hands_on == HandsOn::kNormedRows ? normed : x);
  ValueId head = OwnMatrix(m, blk + "shared_head_head", "output");
  if (head == kNone) head = m.Matrix("token_embd", c.vocabulary_size, d);
  m.Name(blk + "head");
  m.graph().AddOutput(kBlockLogits, m.Matmul(normed, head));
}

}  // namespace weft
