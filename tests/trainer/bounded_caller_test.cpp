#include "bounded_caller.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

namespace ranklog::test {
namespace {

using namespace std::chrono_literals;

TEST(BoundedCaller, CallsAreMadeOneAfterTheOther) {
  BoundedCaller caller;
  int sum = 0;
  for (int i = 1; i <= 100; ++i) ASSERT_TRUE(caller.call([&sum, i] { sum += i; }, 60s));
  EXPECT_EQ(sum, 5050);
}

TEST(BoundedCaller, ACallThatHangsCostsNoMoreThanItsLimitAndEndsAllOthers) {
  auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  {
    BoundedCaller caller;
    EXPECT_FALSE(caller.call([released] { released.wait(); }, 20ms));
    EXPECT_FALSE(caller.call([] { FAIL() << "made behind a call that hangs"; }, 60s));
  }  // does not wait for it either
  release->set_value();
}

TEST(BoundedCaller, AnotherThreadCanGiveUpACall) {
  const auto release = std::make_shared<std::promise<void>>();
  const std::shared_future<void> released = release->get_future().share();
  BoundedCaller caller;
  std::promise<void> begun;
  std::thread other([&] {
    begun.get_future().wait();
    caller.give_up();
  });
  EXPECT_FALSE(caller.call(
      [released, &begun] {
        begun.set_value();
        released.wait();
      },
      60s));
  other.join();
  release->set_value();
}

}  // namespace
}  // namespace ranklog::test
