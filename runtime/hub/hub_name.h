// Names of models on a hub, and which of a repository's files one means.
//
//   "owner/name:Q4_K_M"   the file of that type
//   "owner/name"          the one of a type that most people want
//   "owner/name:a.gguf"   the file of that name, where a type is not enough
//
// A repository has a model in several types, a file for each, or several files
// "x-00001-of-00003.gguf" that are one model. What type a file has, its name
// says; there is no other way to know before it is there.
//
// Names of files come from strangers and from the folder of a cache: only plain
// relative paths are taken (IsPlainPath).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace weft {

struct HubName {
  std::string repository;  // "owner/name"
  std::string type;        // or a file's name; empty: any

  std::string ToString() const;
};

// Nothing for a text that is no such name. One that ends in .gguf or .weft is
// meant for a file.
std::optional<HubName> ParseHubName(absl::string_view text);

// What the address of a repository, or of a file of its main branch, means on
// the hub at `endpoint`: ENDPOINT/owner/name, ENDPOINT/owner/name/resolve/main/
// a.gguf, and as its pages have them (tree, blob). Nothing for other addresses.
std::optional<HubName> ParseHubUrl(absl::string_view url,
                                   absl::string_view endpoint);

// Whether a file of this name may be created below a folder: printable ASCII
// without backslashes, no part of it empty or hidden (so none is ".."), nothing
// too long.
bool IsPlainPath(absl::string_view path);

struct HubFile {
  std::string path;    // in the repository
  int64_t bytes = -1;  // -1: not known
  std::string sha256;  // in hexadecimal; empty: not known
  std::string etag;  // where there is no sha256: what else tells contents apart
};

// A model: one file, or all parts in their order.
struct ModelChoice {
  std::string type;  // as its name has it, in capitals; empty: it has none
  std::vector<HubFile> files;

  // -1: not known.
  int64_t bytes() const;
};

// The models among these files, by type. Left out are split models without all
// of their parts, and what is no language model (vision projectors, importance
// matrices).
std::vector<ModelChoice> ChoicesOf(absl::Span<const HubFile> files);

// The one that `type` means: a type, without regard to case, or a file's name.
// Errors name what there is: kNotFound, nothing of that kind; and
// kFailedPrecondition, several.
absl::StatusOr<ModelChoice> Choose(absl::Span<const ModelChoice> choices,
                                   const HubName& name);

// Both of these; where there is none of that kind, the error also names split
// models whose parts are not all there.
absl::StatusOr<ModelChoice> ChooseAmong(absl::Span<const HubFile> files,
                                        const HubName& name);

// "Q4_K_M 2.1 GB, Q8_0 3.9 GB": for messages.
std::string Describe(absl::Span<const ModelChoice> choices);

// "2.1 GB", in powers of 1000, as hubs write it.
std::string DescribeBytes(int64_t bytes);

}  // namespace weft
