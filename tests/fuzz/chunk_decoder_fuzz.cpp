// Hostile chunks, under a right checksum: each must decode to something or be refused as damaged, in bounded
// time and memory. What decodes must encode again to the same rows.
//
//   clang++ ... -fsanitize=fuzzer,address,undefined; fuzz_chunk_decoder -max_total_time=600

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "envelope.hpp"
#include "ranklog/schema/chunk_codec.hpp"
#include "ranklog/schema/error.hpp"
#include "schema/sample_rows.hpp"

namespace {

void try_chunk(const std::string& bytes) {
  try {
    const ranklog::RowGroup group = ranklog::decode_chunk(bytes);
    if (!ranklog::test::same_group(ranklog::decode_chunk(ranklog::encode_chunk(group)), group)) std::abort();
  } catch (const ranklog::Error& error) {
    if (error.code() != ranklog::ErrorCode::kDamaged) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try_chunk(std::string(content));
  try_chunk(ranklog::seal_plain_envelope(content));
  return 0;
}
