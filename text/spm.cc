#include "text/spm.h"

#include <algorithm>
#include <array>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "text/merge.h"
#include "text/piece.h"
#include "text/utf8.h"

namespace weft {
namespace {

class Spm : public TokenizerFamily {
 public:
  static absl::StatusOr<std::unique_ptr<const TokenizerFamily>> Create(
      const Vocabulary& vocabulary) {
    std::unique_ptr<Spm> made(new Spm);
    const absl::Status status = made->Fill(vocabulary);
    if (!status.ok()) return status;
    return made;
  }

  absl::Status Encode(absl::string_view text, bool space_prefix,
                      StopCheck& stop,
                      std::vector<int32_t>& ids) const override {
    std::string with_prefix;
    if (space_prefix) {
      with_prefix = absl::StrCat(" ", text);
      text = with_prefix;
    }
    MergeWork work;
    while (!text.empty() && !stop.Stopped()) {
      const absl::string_view part = text.substr(0, PartSize(text));
      const absl::Status status = EncodePart(part, stop, work, ids);
      if (!status.ok()) return status;
      text.remove_prefix(part.size());
    }
    return absl::OkStatus();
  }

  absl::string_view Bytes(int32_t id) const override { return bytes_[id]; }
  bool default_add_bos() const override { return true; }
  bool default_add_space_prefix() const override { return true; }

  size_t MemoryBytes() const override {
    return sizeof(*this) + BytesOfTexts(bytes_) +
           merges_.capacity() * (sizeof(absl::string_view) + sizeof(Merge) + 1);
  }

 private:
  absl::Status Fill(const Vocabulary& vocabulary) {
    const int count = vocabulary.tokens_size();
    unknown_ = vocabulary.unknown();
    byte_ids_.fill(-1);
    bytes_.resize(count);
    std::vector<float> scores(vocabulary.scores().begin(),
                              vocabulary.scores().end());
    scores.resize(count, 0.0f);
    // Ranks are the scores' places, best first: equal scores share one.
    std::vector<float> order = scores;
    std::sort(order.begin(), order.end(), std::greater<>());
    order.erase(std::unique(order.begin(), order.end()), order.end());

    for (int id = 0; id < count; ++id) {
      const std::string& text = vocabulary.tokens(id);
      const Vocabulary::TokenType type = vocabulary.types(id);
      if (type == Vocabulary::BYTE) {
        const int value = ByteTokenValue(text);
        if (value < 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("vocabulary: token ", id,
                           ": a byte token must read <0x00> to <0xFF>"));
        }
        if (byte_ids_[value] < 0) byte_ids_[value] = id;
        bytes_[id] = std::string(1, static_cast<char>(value));
        continue;
      }
      bytes_[id] = PieceText(text);
      // What stands for itself is cut out beforehand and must not come about by
      // joining: text that looks like a control token stays text.
      if (type == Vocabulary::CONTROL || type == Vocabulary::UNKNOWN ||
          type == Vocabulary::USER_DEFINED || text.empty()) {
        continue;
      }
      const uint32_t rank =
          static_cast<uint32_t>(std::lower_bound(order.begin(), order.end(),
                                                 scores[id], std::greater<>()) -
                                order.begin());
      merges_.try_emplace(bytes_[id], Merge{rank, id});
      longest_ = std::max(longest_, bytes_[id].size());
      for (size_t i = 1; i < bytes_[id].size(); ++i) {
        if (bytes_[id][i] == ' ' && bytes_[id][i - 1] != ' ') {
          space_only_leads_ = false;
        }
      }
    }
    return absl::OkStatus();
  }

  // Size of the first part of `text` that can be encoded on its own. Where no
  // token has a space after anything else, no merge crosses from a word into
  // the space that follows: words are then parts, which keeps the heap small.
  size_t PartSize(absl::string_view text) const {
    if (!space_only_leads_) return text.size();
    const size_t word = text.find_first_not_of(' ');
    if (word == absl::string_view::npos) return text.size();
    return std::min(text.find(' ', word), text.size());
  }

  absl::Status EncodePart(absl::string_view text, StopCheck& stop,
                          MergeWork& work, std::vector<int32_t>& ids) const {
    work.Clear();
    for (size_t at = 0; at < text.size() && !stop.Stopped();) {
      const size_t size = Utf8UnitAt(text, at).bytes;
      work.Append(at, size, Find(text.substr(at, size)).id);
      at += size;
    }
    MergeSymbols(
        work,
        [&](const MergeSymbol& left, const MergeSymbol& right) {
          return Find(text.substr(left.begin, left.size + right.size));
        },
        [&] { return stop.Stopped(); });
    for (const MergeSymbol& symbol : work.symbols) {
      if (symbol.size == 0) continue;
      if (symbol.id >= 0) {
        ids.push_back(symbol.id);
        continue;
      }
      for (const char c : text.substr(symbol.begin, symbol.size)) {
        const uint8_t byte = static_cast<uint8_t>(c);
        const int32_t id = byte_ids_[byte] >= 0 ? byte_ids_[byte] : unknown_;
        if (id < 0) {
          return absl::InvalidArgumentError(absl::StrCat(
              "tokeniser: byte 0x", absl::Hex(byte, absl::kZeroPad2),
              ": the vocabulary has neither a token for it nor an unknown "
              "token"));
        }
        ids.push_back(id);
      }
    }
    return absl::OkStatus();
  }

  Merge Find(absl::string_view text) const {
    if (text.size() > longest_) return {};
    const auto it = merges_.find(text);
    return it == merges_.end() ? Merge{} : it->second;
  }

  std::vector<std::string> bytes_;  // by id
  // By text, which lies in bytes_: the token, and its rank as a merge's
  // product.
  absl::flat_hash_map<absl::string_view, Merge> merges_;
  size_t longest_ = 0;  // bytes of the longest text in merges_
  std::array<int32_t, 256> byte_ids_;
  int32_t unknown_ = -1;
  bool space_only_leads_ = true;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateSpm(
    const Vocabulary& vocabulary) {
  return Spm::Create(vocabulary);
}

}  // namespace weft
