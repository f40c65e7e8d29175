#include "serve/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

template <typename Hash>
Hash HashOf(absl::string_view key) {
  Hash hash;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(),
         hash.data());
  return hash;
}

}  // namespace

absl::StatusOr<ApiKeys> ApiKeys::Parse(absl::string_view text) {
  ApiKeys keys;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (!absl::c_all_of(line, [](char c) { return c > ' ' && c < 0x7f; })) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", number,
          ": a key of printable ASCII characters without spaces is wanted"));
    }
    keys.hashes_.push_back(HashOf<Hash>(line));
  }
  if (keys.empty()) {
    return absl::InvalidArgumentError("no key in it: write one per line");
  }
  return keys;
}

bool ApiKeys::Accept(absl::string_view authorization) const {
  if (empty()) return true;
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return false;
  const Hash shown = HashOf<Hash>(
      absl::StripAsciiWhitespace(authorization.substr(kScheme.size())));
  bool found = false;
  for (const Hash& hash : hashes_) {
    found |= CRYPTO_memcmp(hash.data(), shown.data(), hash.size()) == 0;
  }
  return found;
}

}  // namespace weft
