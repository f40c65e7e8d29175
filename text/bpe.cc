#include "text/bpe.h"

#include <array>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "text/merge.h"
#include "text/piece.h"
#include "text/pretokenizers.h"
#include "text/utf8.h"

namespace weft {
namespace {

// GPT-2 writes the printable bytes of Latin-1 as themselves and the others, in
// order, as U+0100 and on; the inverse here, by code point; -1 where none is
// meant.
std::array<int, 0x144> ByteOfCodePoint() {
  std::array<int, 0x144> bytes;
  bytes.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) ||
                           (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[printable ? byte : next++] = byte;
  }
  return bytes;
}

// The bytes that `text` stands for; `text` itself if it is not so written.
std::string DecodeBytes(absl::string_view text) {
  static const std::array<int, 0x144> kBytes = ByteOfCodePoint();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit unit = Utf8UnitAt(text, at);
    uint32_t code_point = static_cast<uint8_t>(text[at]);
    if (unit.kind == Utf8Unit::kCharacter && unit.bytes == 2) {
      code_point = (code_point & 0x1F) << 6 |
                   (static_cast<uint8_t>(text[at + 1]) & 0x3F);
    }
    if (unit.kind != Utf8Unit::kCharacter || unit.bytes > 2 ||
        code_point >= kBytes.size() || kBytes[code_point] < 0) {
      return std::string(text);
    }
    bytes.push_back(static_cast<char>(kBytes[code_point]));
    at += unit.bytes;
  }
  return bytes;
}

class Bpe : public TokenizerFamily {
 public:
  static absl::StatusOr<std::unique_ptr<const TokenizerFamily>> Create(
      const Vocabulary& vocabulary) {
    std::unique_ptr<Bpe> made(new Bpe);
    const absl::Status status = made->Fill(vocabulary);
    if (!status.ok()) return status;
    return made;
  }

  absl::Status Encode(absl::string_view text, bool /*space_prefix*/,
                      StopCheck& stop,
                      std::vector<int32_t>& ids) const override {
    MergeWork work;
    while (!text.empty() && !stop.Stopped()) {
      const absl::string_view valid = text.substr(0, ValidUtf8Prefix(text));
      const auto pieces = pretokenizer_->Split(valid);
      if (!pieces.ok()) return pieces.status();
      for (const Pretokenizer::Piece piece : *pieces) {
        if (stop.Stopped()) break;
        const absl::Status status =
            EncodePiece(valid.substr(piece.begin, piece.size), stop, work, ids);
        if (!status.ok()) return status;
      }
      text.remove_prefix(valid.size());
      if (text.empty()) break;
      const size_t ill_formed = Utf8UnitAt(text, 0).bytes;
      const absl::Status status =
          EncodePiece(text.substr(0, ill_formed), stop, work, ids);
      if (!status.ok()) return status;
      text.remove_prefix(ill_formed);
    }
    return absl::OkStatus();
  }

  absl::string_view Bytes(int32_t id) const override {
    return symbol_bytes_[id];
  }
  bool default_add_bos() const override {
    return pretokenizer_->traits().add_bos;
  }
  bool default_add_space_prefix() const override { return false; }
  bool default_add_eos() const override {
    return pretokenizer_->traits().add_separator;
  }
  bool normalizes() const override { return pretokenizer_->traits().nfc; }

  size_t MemoryBytes() const override {
    return sizeof(*this) + pretokenizer_->MemoryBytes() +
           BytesOfTexts(symbol_bytes_) +
           merges_.capacity() * (sizeof(uint64_t) + sizeof(Merge) + 1) +
           known_.capacity() *
               (sizeof(absl::string_view) + sizeof(int64_t) + 1);
  }

 private:
  using SymbolIds = absl::flat_hash_map<std::string, int32_t>;
  // What is in no merge and no token.
  static constexpr int32_t kNoSymbol = std::numeric_limits<int32_t>::max();

  absl::Status Fill(const Vocabulary& vocabulary) {
    auto pretokenizer = Pretokenizer::Create(
        vocabulary.pre().empty() ? "default" : vocabulary.pre());
    if (!pretokenizer.ok()) return pretokenizer.status();
    pretokenizer_ = *std::move(pretokenizer);

    token_count_ = vocabulary.tokens_size();
    unknown_ = vocabulary.unknown();
    byte_symbols_.fill(kNoSymbol);
    SymbolIds symbols;
    symbols.reserve(token_count_);
    symbol_bytes_.reserve(token_count_);
    for (int32_t id = 0; id < token_count_; ++id) {
      const Vocabulary::TokenType type = vocabulary.types(id);
      if (raw() && type == Vocabulary::BYTE) {
        const absl::Status status = AddByteToken(id, vocabulary.tokens(id));
        if (!status.ok()) return status;
        continue;
      }
      symbol_bytes_.push_back(BytesOf(vocabulary.tokens(id)));
      // Control and user-defined tokens stand for their own text and are cut
      // out beforehand: they are not symbols.
      if (type == Vocabulary::CONTROL || type == Vocabulary::USER_DEFINED ||
          vocabulary.tokens(id).empty()) {
        continue;
      }
      symbols.try_emplace(symbol_bytes_.back(), id);
    }
    for (int byte = 0; !raw() && byte < 256; ++byte) {
      byte_symbols_[byte] =
          Intern(std::string(1, static_cast<char>(byte)), symbols);
    }
    const absl::Status status = FillMerges(vocabulary, symbols);
    if (!status.ok()) return status;
    if (pretokenizer_->traits().whole_pieces_first || raw()) {
      known_.reserve(symbols.size());
      for (const auto& [bytes, symbol] : symbols) {
        known_[symbol_bytes_[symbol]] = symbol;
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddByteToken(int32_t id, absl::string_view text) {
    const int value = ByteTokenValue(text);
    if (value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("vocabulary: token ", id,
                       ": a byte token must read <0x00> to <0xFF>"));
    }
    if (byte_symbols_[value] == kNoSymbol) byte_symbols_[value] = id;
    symbol_bytes_.emplace_back(1, static_cast<char>(value));
    return absl::OkStatus();
  }

  absl::Status FillMerges(const Vocabulary& vocabulary, SymbolIds& symbols) {
    merges_.reserve(vocabulary.merges_size());
    for (int rank = 0; rank < vocabulary.merges_size(); ++rank) {
      const absl::string_view merge = vocabulary.merges(rank);
      // A part may itself be a space only in front.
      const size_t space = merge.find(' ', 1);
      if (space == absl::string_view::npos || space + 1 == merge.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("vocabulary: merge ", rank,
                         ": must be two parts with a space between"));
      }
      const std::string left = BytesOf(merge.substr(0, space));
      const std::string right = BytesOf(merge.substr(space + 1));
      const int32_t left_symbol = Intern(left, symbols);
      const int32_t right_symbol = Intern(right, symbols);
      const int32_t product = Intern(left + right, symbols);
      merges_.try_emplace(Pair(left_symbol, right_symbol),
                          Merge{static_cast<uint32_t>(rank), product});
    }
    return absl::OkStatus();
  }

  // The symbol of `bytes`, new if need be.
  int32_t Intern(const std::string& bytes, SymbolIds& symbols) {
    const auto [it, is_new] =
        symbols.try_emplace(bytes, static_cast<int32_t>(symbol_bytes_.size()));
    if (is_new) symbol_bytes_.push_back(bytes);
    return it->second;
  }

  absl::Status EncodePiece(absl::string_view piece, StopCheck& stop,
                           MergeWork& work, std::vector<int32_t>& ids) const {
    if (TakenWhole(piece)) {
      if (const int32_t symbol = Find(piece); IsToken(symbol)) {
        ids.push_back(symbol);
        return absl::OkStatus();
      }
    }
    work.Clear();
    for (size_t i = 0; i < piece.size();) {
      const size_t size = raw() ? Utf8UnitAt(piece, i).bytes : 1;
      work.Append(i, size,
                  raw() ? Find(piece.substr(i, size))
                        : byte_symbols_[static_cast<uint8_t>(piece[i])]);
      i += size;
    }
    MergeSymbols(
        work,
        [&](const MergeSymbol& left, const MergeSymbol& right) {
          const auto it = merges_.find(Pair(left.id, right.id));
          return it == merges_.end() ? Merge{} : it->second;
        },
        [&] { return stop.Stopped(); });
    for (const MergeSymbol& symbol : work.symbols) {
      if (symbol.size == 0) continue;
      if (IsToken(symbol.id)) {
        ids.push_back(symbol.id);
        continue;
      }
      const absl::Status status =
          EncodeBytes(piece.substr(symbol.begin, symbol.size), ids);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // A symbol that is no token, byte by byte.
  absl::Status EncodeBytes(absl::string_view bytes,
                           std::vector<int32_t>& ids) const {
    for (const char c : bytes) {
      const uint8_t byte = static_cast<uint8_t>(c);
      if (IsToken(byte_symbols_[byte])) {
        ids.push_back(byte_symbols_[byte]);
      } else if (CanWriteReplacement()) {
        for (const char r : kReplacementCharacter) {
          ids.push_back(byte_symbols_[static_cast<uint8_t>(r)]);
        }
      } else if (unknown_ >= 0) {
        ids.push_back(unknown_);
      } else {
        return absl::InvalidArgumentError(absl::StrCat(
            "tokeniser: byte 0x", absl::Hex(byte, absl::kZeroPad2),
            ": the vocabulary has neither a token for it nor an unknown "
            "token"));
      }
    }
    return absl::OkStatus();
  }

  bool CanWriteReplacement() const {
    for (const char c : kReplacementCharacter) {
      if (!IsToken(byte_symbols_[static_cast<uint8_t>(c)])) return false;
    }
    return true;
  }

  bool TakenWhole(absl::string_view piece) const {
    const PretokenizerTraits traits = pretokenizer_->traits();
    return traits.whole_pieces_first ||
           (traits.whole_line_ends_first &&
            piece.find_first_not_of('\n') == absl::string_view::npos);
  }

  int32_t Find(absl::string_view bytes) const {
    const auto it = known_.find(bytes);
    return it == known_.end() ? kNoSymbol : it->second;
  }

  bool raw() const { return pretokenizer_->traits().raw; }
  // What a token or a part of a merge stands for.
  std::string BytesOf(absl::string_view text) const {
    return raw() ? PieceText(text) : DecodeBytes(text);
  }

  bool IsToken(int32_t symbol) const { return symbol < token_count_; }

  static uint64_t Pair(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  std::unique_ptr<const Pretokenizer> pretokenizer_;
  // By symbol: tokens first, then bytes and products that are no tokens.
  std::vector<std::string> symbol_bytes_;
  int32_t token_count_ = 0;
  int32_t unknown_ = -1;
  std::array<int32_t, 256> byte_symbols_;
  absl::flat_hash_map<uint64_t, Merge> merges_;
  // Symbols by their bytes, which lie in symbol_bytes_; only where pieces are
  // looked up whole, or texts begin as characters.
  absl::flat_hash_map<absl::string_view, int32_t> known_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const TokenizerFamily>> CreateBpe(
    const Vocabulary& vocabulary) {
  return Bpe::Create(vocabulary);
}

}  // namespace weft
