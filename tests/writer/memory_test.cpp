// Memory that runs out inside a call.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "ranklog/schema/naming.hpp"
#include "support/temp_dir.hpp"
#include "tail_rows.hpp"

namespace {

constexpr int kNever = -1;
constinit thread_local int allocations_left = kNever;

}  // namespace

void* operator new(std::size_t bytes) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace ranklog::writer {
namespace {

TEST(WantOfMemory, KeyThatFindsNoneLeavesNoGapInTheTail) {
  const test::TempDir dir;
  TailQueue queue({dir / "rank-00000.db", encode_tail_header("token", 0), TailMode::kMapped},
                  {std::size_t{64} << 10, true}, [] {});
  KeyId keys = 0;
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    allocations_left = round % 10;
    try {
      queue.define_key(keys, KeyPath::flat(std::string(50, 'k')));
      ++keys;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    allocations_left = kNever;
    ASSERT_EQ(test::TailRowOnItsWay(queue).publish(), 0);
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(keys, 0U);
  EXPECT_EQ(test::drain(queue).size(), 100U);
  EXPECT_TRUE(queue.is_drained());
}

}  // namespace
}  // namespace ranklog::writer
