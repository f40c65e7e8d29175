// The inner loop of x86 without vpdpbusd on 16 lanes: one unpacked panel
// against some rows of x, with the products of byte_products_x86.h.
#pragma once

#include "ops/kernels/matmul/buffered_kernels.h"
#include "ops/kernels/matmul/byte_products_x86.h"
#include "ops/kernels/matmul/tile_fields.h"

namespace weft {
namespace {

// Rows first_row .. first_row + rows - 1 of a tile of tile_rows, carried over
// `blocks` blocks; the rest as BufferedKernels says.
template <class Kind, class Products, int rows>
__attribute__((noinline)) void ByteTile(const uint8_t* quants,
                                        const float* scales, const uint8_t* x,
                                        int tile_rows, int first_row,
                                        int64_t blocks, float* sums_memory) {
  constexpr int per_32 = Kind::kScalesPer32;
  constexpr int offset = Products::template Offset<Kind>();
  FloatVector sums[rows][kParts];
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
      sums[m][v] = LoadFloats(sums_memory + m * kSumsStride + kPartLanes * v);
    }
  }
  for (int64_t b = 0; b < blocks; ++b) {
    const TileFields fields = FieldsOf(x, tile_rows, first_row);
    WEFT_UNROLL for (int h = 0; h < per_32; ++h) {
      IntVector dots[rows][kParts];
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const IntVector start =
            SplatInt(offset == 0 ? 0 : -offset * SumOf<per_32>(fields, m, h));
        WEFT_UNROLL for (int v = 0; v < kParts; ++v) dots[m][v] = start;
      }
      Products::template Add<Kind, rows>(dots, quants, fields.q,
                                         h * Kind::kGroups);
      WEFT_UNROLL for (int m = 0; m < rows; ++m) {
        const FloatVector xs = SplatFloat(fields.scale[m]);
        WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
          const FloatVector scale =
              LoadFloats(scales + 32 * h + kPartLanes * v);
          sums[m][v] = AddProduct(IntsToFloats(dots[m][v]), Multiply(scale, xs),
                                  sums[m][v]);
        }
        if (Kind::kHasMin) {
          const FloatVector xsum =
              SplatFloat(ScaledSumOf<per_32>(fields, m, h));
          WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
            const float* min = scales + 32 * (per_32 + h) + kPartLanes * v;
            sums[m][v] = AddProduct(xsum, LoadFloats(min), sums[m][v]);
          }
        }
      }
    }
    quants += 512;
    scales += Kind::kScaleFloats;
    x += tile_rows * kQuantizedRowsBlockBytes;
  }
  WEFT_UNROLL for (int m = 0; m < rows; ++m) {
    WEFT_UNROLL for (int v = 0; v < kParts; ++v) {
      StoreAnywhere(sums_memory + m * kSumsStride + kPartLanes * v, sums[m][v]);
    }
  }
}

template <class Products>
struct ByteRows {
  template <class Kind>
  static void Add(const uint8_t* quants, const float* scales, const uint8_t* x,
                  int rows, int64_t blocks, float* sums) {
    for (int first = 0; first < rows; first += kByteRows) {
      float* to = sums + first * kSumsStride;
      const auto run = [&](auto tile) {
        tile(quants, scales, x, rows, first, blocks, to);
      };
      const int left = rows - first < kByteRows ? rows - first : kByteRows;
      switch (left) {
        case 1:
          run(ByteTile<Kind, Products, 1>);
          break;
        case 2:
          run(ByteTile<Kind, Products, 2>);
          break;
        case 3:
          run(ByteTile<Kind, Products, 3>);
          break;
#if defined(__AVX512BW__)
        case 4:
          run(ByteTile<Kind, Products, 4>);
          break;
        case 5:
          run(ByteTile<Kind, Products, 5>);
          break;
        default:
          run(ByteTile<Kind, Products, 6>);
          break;
#endif
      }
    }
  }
};

}  // namespace
}  // namespace weft
