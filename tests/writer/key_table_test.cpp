#include "key_table.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace ranklog::writer {
namespace {

TEST(KeyTable, KeysKeepTheirNumbersHoweverMany) {
  std::vector<KeyId> defined;
  KeyTable keys([&](KeyId id, const KeyPath&) { defined.push_back(id); });
  for (KeyId i = 0; i < 5000; ++i) ASSERT_EQ(keys.intern("key/" + std::to_string(i))->id, i);
  for (KeyId i = 0; i < 5000; ++i) ASSERT_EQ(keys.intern("key/" + std::to_string(i))->id, i);
  ASSERT_EQ(defined.size(), 5000U);
  EXPECT_EQ(defined.back(), 4999U);
  EXPECT_EQ(keys.size(), 5000U);
  EXPECT_EQ(keys.paths_from(4998),
            (std::vector<KeyPath>{KeyPath::flat("key/4998"), KeyPath::flat("key/4999")}));
}

TEST(KeyTable, FlatNameAndPathAreTwoKeys) {
  KeyTable keys([](KeyId, const KeyPath&) {});
  EXPECT_EQ(keys.intern("a.b")->id, 0U);
  EXPECT_EQ(keys.intern(KeyPath{{"a", "b"}}), 1U);
  EXPECT_EQ(keys.intern(KeyPath{{"a", "b"}}), 1U);
  EXPECT_EQ(keys.intern(KeyPath::flat("a.b")), 0U);
  EXPECT_EQ(keys.intern("")->id, 2U);
}

TEST(KeyTable, ReservedNamesAreRefused) {
  KeyTable keys([](KeyId, const KeyPath&) {});
  EXPECT_EQ(keys.intern("_step"), nullptr);
  EXPECT_EQ(keys.intern(KeyPath{{"_timestamp", "x"}}), std::nullopt);
  EXPECT_EQ(keys.size(), 0U);
}

TEST(KeyTable, KeyThatCannotBeDefinedIsNotKnown) {
  bool refuse = true;
  KeyTable keys([&](KeyId, const KeyPath&) {
    if (refuse) throw std::bad_alloc();
  });
  EXPECT_THROW((void)keys.intern("a"), std::bad_alloc);
  EXPECT_THROW((void)keys.intern(KeyPath{{"a", "b"}}), std::bad_alloc);
  refuse = false;
  EXPECT_EQ(keys.intern(KeyPath{{"a", "b"}}), 0U);
  EXPECT_EQ(keys.intern("a")->id, 1U);
}

TEST(KeyTable, ThreadsThatMeetANewKeyAgreeOnIt) {
  KeyTable keys([](KeyId, const KeyPath&) {});
  constexpr int kKeys = 2000;
  std::vector<std::vector<KeyId>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : found) {
      threads.emplace_back([&keys, &ids] {
        for (int i = 0; i < kKeys; ++i) ids.push_back(keys.intern(std::to_string(i))->id);
      });
    }
  }
  for (const auto& ids : found) EXPECT_EQ(ids, found[0]);
  EXPECT_EQ(keys.size(), static_cast<std::size_t>(kKeys));
}

}  // namespace
}  // namespace ranklog::writer
