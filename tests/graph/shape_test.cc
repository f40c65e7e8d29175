#include "graph/shape.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

const Bounds kBounds = {/*tokens=*/7, /*rows=*/3, /*context=*/100};

TEST(ShapeTest, SymbolsStandForTheBounds) {
  EXPECT_EQ(Dim::Tokens().Resolve(kBounds), 7);
  EXPECT_EQ(Dim::Rows().Resolve(kBounds), 3);
  EXPECT_EQ(Dim::Context().Resolve(kBounds), 100);
  EXPECT_EQ(Dim::Number(5).Resolve(kBounds), 5);
}

TEST(ShapeTest, ElementsMultiplyAllDimensionsAndRowElementsAllButTheFirst) {
  const Shape shape = {Dim::Tokens(), Dim::Number(8), Dim::Context()};
  EXPECT_EQ(shape.Elements(kBounds), 7 * 8 * 100);
  EXPECT_EQ(shape.RowElements(kBounds), 8 * 100);
  EXPECT_EQ((Shape{Dim::Number(9)}).RowElements(kBounds), 1);
  EXPECT_EQ(Shape().Elements(kBounds), 1);
}

TEST(ShapeTest, PrintsSymbolsByTheirLetters) {
  EXPECT_EQ((Shape{Dim::Tokens(), Dim::Rows(), Dim::Context(), Dim::Number(64)})
                .ToString(),
            "[T,R,S,64]");
}

TEST(ShapeTest, ASymbolDiffersFromANumberOfTheSameSize) {
  EXPECT_NE((Shape{Dim::Tokens()}), (Shape{Dim::Rows()}));
  EXPECT_NE((Shape{Dim::Tokens()}), (Shape{Dim::Number(7)}));
  EXPECT_NE((Shape{Dim::Number(7)}), (Shape{Dim::Number(7), Dim::Number(1)}));
  EXPECT_EQ((Shape{Dim::Tokens(), Dim::Number(2)}),
            (Shape{Dim::Tokens(), Dim::Number(2)}));
}

}  // namespace
}  // namespace weft
