#pragma once
// The descriptors of a console capture: where stdout and stderr went, and what stands in their place.

#include <string>
#include <vector>

#include "disk.hpp"

namespace ranklog::writer {

struct ConsolePipe {
  Descriptor reader, writer;
};
// Both ends closed on exec, and above those that a relay is given. Throws Error (kIo).
[[nodiscard]] ConsolePipe make_console_pipe();

struct ConsoleSource {
  char carries = 0;  // a letter of console_protocol.hpp
  Descriptor reader;
  Descriptor writer;                    // stands in the place of 1, 2 or both; closed once it does
  unsigned long device = 0, inode = 0;  // tells whether a descriptor is still the writer
};

struct ConsoleDescriptors {
  Descriptor originals[2];  // of stdout and stderr; closed if they were
  std::vector<ConsoleSource> sources;
  [[nodiscard]] std::string layout() const;
  // Puts the writers in place of 1 and 2.
  void install();
  // Puts the originals back where the writers still are.
  void restore() noexcept;
};
// Changes nothing yet. Throws Error (kIo).
[[nodiscard]] ConsoleDescriptors prepare_console_descriptors();

}  // namespace ranklog::writer
