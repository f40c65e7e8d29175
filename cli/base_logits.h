// The distributions that a model gives over a text, kept in a file so that
// others can be compared with them: how much a quantised model differs.
//
// The file: "WEFTKLB2", the vocabulary's size (uint32), 0 (uint32), the
// context, the stride and the number of rows (int64), hashes of the text and of
// the vocabulary (16 characters each), then for each token that counts a row:
// the token (int32), the largest log-probability and a step (float32), and for
// every token of the vocabulary how many steps it lies below the largest
// (uint16). A step is 1/65535 of the row's range, so a log-probability is right
// to some 0.0003; a row takes 2 bytes for each token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "base/output_file.h"

namespace weft {

// What two models must be run with alike to be compared.
struct BaseRun {
  int64_t vocabulary = 0;  // tokens
  int64_t context = 0;
  int64_t stride = 0;
  std::string text_hash, vocabulary_hash;  // HashText of files.h
};

class BaseLogitsWriter {
 public:
  static absl::StatusOr<BaseLogitsWriter> Create(const std::string& path,
                                                 const BaseRun& run);
  // Of the next token that counts, which the text has there. Errors: those of
  // writing; logits of which none is a number.
  absl::Status Add(int32_t token, absl::Span<const float> logits);
  // The file is there only after this.
  absl::Status Commit();

 private:
  BaseLogitsWriter(OutputFile file, int64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  OutputFile file_;
  int64_t offset_;
  int64_t rows_ = 0;
  std::vector<uint8_t> row_;
};

// How far a model is from the base: Kullback-Leibler divergences, in nats.
struct Divergence {
  double mean = 0.0;
  double percentile99 = 0.0;
  double same_top =
      0.0;  // share of tokens where both have the same first choice
};

class BaseLogitsReader {
 public:
  // Errors: no such file; one that was made otherwise, with what differs; one
  // that ends early.
  static absl::StatusOr<BaseLogitsReader> Open(const std::string& path,
                                               const BaseRun& run);
  // In the order of the file. Errors: the file was made of another text.
  absl::Status Compare(int32_t token, absl::Span<const float> logits);
  // Requires one comparison at least. Errors: the file has more.
  absl::StatusOr<Divergence> Result();

 private:
  BaseLogitsReader(std::shared_ptr<const MappedFile> file, int64_t vocabulary,
                   int64_t rows)
      : file_(std::move(file)), vocabulary_(vocabulary), rows_(rows) {}
  absl::Status OtherText() const;

  std::shared_ptr<const MappedFile> file_;
  int64_t vocabulary_;
  int64_t rows_;
  int64_t same_ = 0;
  std::vector<double> divergences_;
  std::vector<double> base_;
};

}  // namespace weft
