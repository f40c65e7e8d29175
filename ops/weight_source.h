// The rows of a weight that is made of others: one below the other, or 16 of
// each in turn. Lets a weight be packed straight from the model file.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace weft {

class WeightSource {
 public:
  // Rows below those added before. All parts have one type and row length;
  // `data` is row after row and must outlive this.
  void Add(const ValueType& type, const uint8_t* data);
  // Rows begin .. begin + size - 1 of each of the equal parts of such a weight.
  void AddSlice(const ValueType& type, const uint8_t* data, int64_t parts,
                int64_t begin, int64_t size);

  // The columns of such rows of each part as rows (transpose_rows): made when
  // they are packed, beside which nothing else is added.
  void SetTransposed(const ValueType& type, const uint8_t* data, int64_t parts,
                     int64_t begin, int64_t size);
  // The type of a weight of `type` whose rows are turned into columns.
  // Quantised types have blocks along rows: of these the numbers are kept in
  // F16.
  static DType TransposedType(DType type);

  // Takes 16 rows of each of the two halves in turn from now on.
  void Interleave();

  int64_t rows() const { return rows_; }
  const uint8_t* Row(int64_t row) const;

  // Lays the rows out as `type` says. `out` has StorageBytes(type) bytes.
  void Pack(const ValueType& type, uint8_t* out) const;

 private:
  void AddRows(const uint8_t* data, int64_t rows);

  // The rows of SetTransposed, in their type.
  std::vector<uint8_t> TransposedRows() const;

  struct Transposed {
    ValueType type;
    const uint8_t* data = nullptr;  // null: there is none
    int64_t parts, begin, size;
  };
  Transposed transposed_;
  struct Part {
    int64_t first_row;
    const uint8_t* data;
  };
  std::vector<Part> parts_;
  int64_t rows_ = 0;
  int64_t row_bytes_ = 0;
  bool interleaved_ = false;
};

}  // namespace weft
