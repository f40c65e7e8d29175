#include "loaders/convert/sentencepiece_model.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "loaders/convert/sentencepiece_model.pb.h"
#include "loaders/utf8.h"

namespace weft {
namespace {

// The largest published ones have 5 MB and a quarter of a million pieces.
constexpr size_t kMostBytes = size_t{1} << 24;
constexpr int kMostPieces = 1 << 22;

}  // namespace

absl::StatusOr<SentencePieceModel> ReadSentencePieceModel(
    const std::string& path) {
  const auto bad = [&path](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot convert: ", path, ": ", why,
                     ": use a folder with tokenizer.json"));
  };
  WEFT_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const absl::Span<const uint8_t> bytes = file->bytes();
  if (bytes.size() > kMostBytes) return bad("it is too large");
  sentencepiece::ModelProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      proto.pieces().empty() || proto.pieces_size() > kMostPieces) {
    return bad("it is no SentencePiece model");
  }
  if (proto.trainer_spec().model_type() != sentencepiece::TrainerSpec::BPE) {
    return bad("its model is not BPE");
  }
  const sentencepiece::NormalizerSpec& normalizer = proto.normalizer_spec();
  if (!normalizer.precompiled_charsmap().empty() ||
      normalizer.remove_extra_whitespaces() ||
      !normalizer.escape_whitespaces() ||
      proto.trainer_spec().treat_whitespace_as_suffix()) {
    return bad(
        "its normaliser does more than to write spaces as U+2581, which no "
        "reader of such files does");
  }
  SentencePieceModel model;
  model.prefixed = normalizer.add_dummy_prefix();
  model.pieces.reserve(static_cast<size_t>(proto.pieces_size()));
  for (const auto& piece : proto.pieces()) {
    if (piece.piece().empty() || !IsValidUtf8(piece.piece()) ||
        !std::isfinite(piece.score())) {
      return bad(
          absl::StrCat("piece ", model.pieces.size(), " has no text or score"));
    }
    model.pieces.push_back({piece.piece(), piece.score(), piece.type()});
  }
  return model;
}

}  // namespace weft
